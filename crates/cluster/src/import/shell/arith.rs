//! Evaluates `$(( … ))` over whole numbers. Unknown variables remain as names in a short expression.

/// Result: a number, an expression of unknown variables, or an unknown value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Num {
    Known(i64),
    Symbol(String),
    Unknown,
    /// An unknown value that depends on these variables, separated by commas.
    Open(String),
}

/// Access to the shell's variables, and the report of divisions by zero.
pub(crate) trait Scope {
    fn get(&mut self, name: &str) -> Num;
    fn set(&mut self, name: &str, value: &Num);
    fn divided_by_zero(&mut self, expr: &str);
}

struct Calc<'a, S: Scope> {
    src: Vec<char>,
    pos: usize,
    depth: u32,
    whole: &'a str,
    scope: &'a mut S,
    /// False in the operand of `?:`, `&&` or `||` that is not evaluated.
    live: bool,
}

const MAX_DEPTH: u32 = 40;
const MAX_SYMBOL: usize = 200;
const BINARY: &[(&str, u8)] = &[
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("**", 11),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// An unknown value that depends on the variables in `parts`.
fn open(parts: &[&Num]) -> Num {
    let mut names: Vec<&str> = Vec::new();
    for p in parts {
        if let Num::Symbol(s) | Num::Open(s) = p {
            for n in s.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
                if n.starts_with(|c: char| c.is_ascii_alphabetic()) && !names.contains(&n) {
                    names.push(n);
                }
            }
        }
    }
    if names.is_empty() { Num::Unknown } else { Num::Open(names.join(",")) }
}

/// Evaluates an expression, including assignments.
pub(crate) fn eval<S: Scope>(expr: &str, scope: &mut S) -> Num {
    let mut c = Calc { src: expr.chars().collect(), pos: 0, depth: 0, whole: expr, scope, live: true };
    let mut value = c.ternary();
    while c.take(",") {
        value = c.ternary();
    }
    value
}

impl<S: Scope> Calc<'_, S> {
    fn space(&mut self) {
        while self.src.get(self.pos).is_some_and(|c| c.is_whitespace()) {
            self.pos += 1;
        }
    }

    fn at(&self, s: &str) -> bool {
        s.chars().enumerate().all(|(i, c)| self.src.get(self.pos + i) == Some(&c))
    }

    fn take(&mut self, s: &str) -> bool {
        self.space();
        let hit = self.at(s);
        if hit {
            self.pos += s.chars().count();
        }
        hit
    }

    fn ternary(&mut self) -> Num {
        if self.depth > MAX_DEPTH {
            self.pos = self.src.len();
            return Num::Unknown;
        }
        self.depth += 1;
        let cond = self.binary(1);
        let out = if self.take("?") {
            let live = self.live;
            self.live = live && matches!(cond, Num::Known(n) if n != 0);
            let yes = self.ternary();
            self.take(":");
            self.live = live && matches!(cond, Num::Known(0));
            let no = self.ternary();
            self.live = live;
            match cond {
                Num::Known(0) => no,
                Num::Known(_) => yes,
                _ if yes == no => yes,
                _ => open(&[&cond, &yes, &no]),
            }
        } else {
            cond
        };
        self.depth -= 1;
        out
    }

    fn operator(&mut self, min: u8) -> Option<(&'static str, u8)> {
        self.space();
        // The longest operator matches: `**` before `*`, `<=` before `<`.
        let (op, prec) = BINARY.iter().filter(|(op, _)| self.at(op)).max_by_key(|(op, _)| op.len()).copied()?;
        // `+=` and similar operators are assignments.
        let next = self.src.get(self.pos + op.len());
        if next == Some(&'=') && matches!(op, "+" | "-" | "*" | "/" | "%" | "<<" | ">>" | "&" | "|" | "^") {
            return None;
        }
        (prec >= min).then_some((op, prec))
    }

    fn binary(&mut self, min: u8) -> Num {
        let mut left = self.unary();
        while let Some((op, prec)) = self.operator(min) {
            self.pos += op.len();
            let live = self.live;
            match op {
                "&&" => self.live = live && left != Num::Known(0),
                "||" => self.live = live && !matches!(left, Num::Known(n) if n != 0),
                _ => {}
            }
            let right = if self.depth > MAX_DEPTH { Num::Unknown } else { self.binary(prec + 1) };
            self.live = live;
            left = self.apply(op, left, right);
        }
        left
    }

    fn apply(&mut self, op: &str, a: Num, b: Num) -> Num {
        if let (Num::Known(a), Num::Known(b)) = (&a, &b) {
            let (a, b) = (*a, *b);
            let flag = |c: bool| Some(i64::from(c));
            let out = match op {
                "||" => flag(a != 0 || b != 0),
                "&&" => flag(a != 0 && b != 0),
                "|" => Some(a | b),
                "^" => Some(a ^ b),
                "&" => Some(a & b),
                "==" => flag(a == b),
                "!=" => flag(a != b),
                "<=" => flag(a <= b),
                ">=" => flag(a >= b),
                "<" => flag(a < b),
                ">" => flag(a > b),
                "<<" => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
                ">>" => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)),
                "+" => a.checked_add(b),
                "-" => a.checked_sub(b),
                "*" => a.checked_mul(b),
                "**" => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
                "/" | "%" => {
                    if b == 0 && self.live {
                        self.scope.divided_by_zero(self.whole);
                    }
                    if op == "/" { a.checked_div(b) } else { a.checked_rem(b) }
                }
                _ => None,
            };
            return out.map_or(Num::Unknown, Num::Known);
        }
        if !matches!(op, "+" | "-" | "*") {
            return open(&[&a, &b]);
        }
        let part = |n: &Num, tight: bool| match n {
            Num::Known(n) => Some(n.to_string()),
            Num::Symbol(s) if tight && s.contains(['+', '-']) => Some(format!("({s})")),
            Num::Symbol(s) => Some(s.clone()),
            Num::Unknown | Num::Open(_) => None,
        };
        match (part(&a, op == "*"), part(&b, op != "+")) {
            (Some(a), Some(b)) if a.len() + b.len() < MAX_SYMBOL => Num::Symbol(format!("{a}{op}{b}")),
            _ => open(&[&a, &b]),
        }
    }

    fn unary(&mut self) -> Num {
        if self.depth > MAX_DEPTH {
            self.pos = self.src.len();
            return Num::Unknown;
        }
        self.depth += 1;
        let out = self.unary_inner();
        self.depth -= 1;
        out
    }

    fn unary_inner(&mut self) -> Num {
        self.space();
        for op in ["++", "--"] {
            if self.at(op) {
                self.pos += 2;
                let name = self.name();
                return self.step(&name, op, true);
            }
        }
        if self.take("-") {
            return match self.unary() {
                Num::Known(n) => n.checked_neg().map_or(Num::Unknown, Num::Known),
                _ => Num::Unknown,
            };
        }
        if self.take("+") {
            return self.unary();
        }
        if self.at("!") && !self.at("!=") {
            self.pos += 1;
            return match self.unary() {
                Num::Known(n) => Num::Known(i64::from(n == 0)),
                _ => Num::Unknown,
            };
        }
        if self.take("~") {
            return match self.unary() {
                Num::Known(n) => Num::Known(!n),
                _ => Num::Unknown,
            };
        }
        if self.take("(") {
            let v = self.ternary();
            self.take(")");
            return v;
        }
        let Some(&c) = self.src.get(self.pos) else { return Num::Unknown };
        if c == '\u{E000}' {
            // An unknown part that was expanded into the expression.
            let rest: String = self.src.iter().skip(self.pos + 1).take_while(|c| **c != '\u{E001}').collect();
            self.pos += rest.chars().count() + 2;
            return match rest.split_once(':') {
                Some((_, names)) if rest.starts_with('?') => Num::Open(names.to_owned()),
                _ if rest.is_empty() || rest.starts_with('?') => Num::Unknown,
                _ => Num::Symbol(rest),
            };
        }
        if c.is_ascii_digit() {
            let digits: String =
                self.src.iter().skip(self.pos).take_while(|c| c.is_ascii_alphanumeric() || **c == '#').collect();
            self.pos += digits.chars().count();
            let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
            let v = match (hex, digits.split_once('#')) {
                (Some(h), _) => i64::from_str_radix(h, 16).ok(),
                (_, Some((base, d))) => {
                    base.parse().ok().filter(|b| (2..=36).contains(b)).and_then(|b| i64::from_str_radix(d, b).ok())
                }
                _ => digits.parse().ok(),
            };
            return v.map_or(Num::Unknown, Num::Known);
        }
        let name = self.name();
        if name.is_empty() {
            self.pos += 1;
            return Num::Unknown;
        }
        self.space();
        if self.at("[") {
            while self.src.get(self.pos).is_some_and(|c| *c != ']') {
                self.pos += 1;
            }
            self.pos += 1;
            return Num::Unknown;
        }
        for op in ["++", "--"] {
            if self.at(op) {
                self.pos += 2;
                return self.step(&name, op, false);
            }
        }
        for op in ["+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "="] {
            if self.at(op) && !self.at("==") {
                self.pos += op.len();
                let right = self.ternary();
                let value = match op.strip_suffix('=') {
                    Some("") | None => right,
                    Some(o) => {
                        let left = self.scope.get(&name);
                        self.apply(o, left, right)
                    }
                };
                if self.live {
                    self.scope.set(&name, &value);
                }
                return value;
            }
        }
        self.scope.get(&name)
    }

    fn name(&mut self) -> String {
        self.space();
        if self.src.get(self.pos) == Some(&'$') {
            self.pos += 1;
        }
        let s: String =
            self.src.iter().skip(self.pos).take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
        self.pos += s.chars().count();
        s
    }

    fn step(&mut self, name: &str, op: &str, before: bool) -> Num {
        let old = self.scope.get(name);
        let new = match &old {
            Num::Known(n) => n.checked_add(if op == "++" { 1 } else { -1 }).map_or(Num::Unknown, Num::Known),
            _ => Num::Unknown,
        };
        if self.live {
            self.scope.set(name, &new);
        }
        if before { new } else { old }
    }
}
