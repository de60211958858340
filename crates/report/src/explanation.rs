//! Derivation of a metric as an indented tree: each term with its value, its equation in symbols and numbers, and its
//! origin.

use super::table::wrap;
use atlas_plan::explain::{Origin, Term};

/// Renders the tree down to `depth` levels below its root, wrapped to `width` columns. The parts of a term are listed
/// only at its first occurrence.
#[must_use]
pub fn render(tree: &Term, metric: &str, depth: usize, width: usize) -> String {
    let mut out = format!("{metric}: {}\n\n", tree.name);
    let mut renderer = Renderer { out: &mut out, width: width.max(40), described: Vec::new(), hidden: false };
    renderer.term(tree, "", "", depth);
    if renderer.hidden {
        out.push_str("\n… marks hidden terms; use --depth N to show more, --format json to show all\n");
    }
    out
}

struct Renderer<'a> {
    out: &'a mut String,
    width: usize,
    described: Vec<(String, f64)>,
    hidden: bool,
}

impl Renderer<'_> {
    /// Writes a term and its parts, `depth` levels deep. `first` prefixes the first line, `rest` the following ones.
    fn term(&mut self, term: &Term, first: &str, rest: &str, depth: usize) {
        let below = if term.terms.is_empty() { " " } else { "│" };
        let name = if term.name.is_empty() || first.is_empty() { String::new() } else { format!(" – {}", term.name) };
        self.line(&format!("{} = {}{name}", term.symbol, term.shown()), first, &format!("{rest}{below}   "));
        let known = (term.symbol.to_string(), term.value);
        let again = term.equation.is_some() && self.described.contains(&known);
        if again {
            self.line("as above", &format!("{rest}    "), rest);
            return;
        }
        let open = depth > 0 && !again;
        let below = if open && !(term.terms.is_empty() && term.dependencies.is_empty()) { "│" } else { " " };
        let (inner, cont) = (format!("{rest}{below}   "), format!("{rest}{below}     "));
        if let (Some(symbols), Some(numbers)) = (term.in_symbols(), term.in_numbers()) {
            self.described.push(known);
            let more = if open { "" } else { " …" };
            self.hidden |= !open;
            self.line(&format!("{symbols} = {numbers}{more}"), &inner, &cont);
        }
        if let Some(origin) = &term.origin {
            self.line(&origin_text(origin), &inner, &cont);
        }
        if !open {
            return;
        }
        // The terms that bear on a value without being part of its equation are listed one level below it.
        let children =
            term.terms.iter().map(|term| (term, false)).chain(term.dependencies.iter().map(|term| (term, true)));
        let count = term.terms.len() + term.dependencies.len();
        for (i, (child, bearing)) in children.enumerate() {
            let (branch, trunk) = if i + 1 == count { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let sign = if bearing { "with " } else { "" };
            self.term(child, &format!("{rest}{branch}{sign}"), &format!("{rest}{trunk}"), depth - 1);
        }
    }

    fn line(&mut self, text: &str, first: &str, rest: &str) {
        // `wrap` splits at spaces and would break up the indentation, so it is added after wrapping.
        let room = self.width.saturating_sub(rest.chars().count()).max(24);
        for (i, line) in wrap(text, room, "").lines().enumerate() {
            self.out.push_str(if i == 0 { first } else { rest });
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}

/// Origin of an input. For constants only the end of their description; the rest is in the documentation.
fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Engine(how) => format!("({how})"),
        origin => format!("[{origin}]"),
    }
}
