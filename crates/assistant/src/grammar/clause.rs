//! Parser of the clauses.

use super::super::{Hardware, Known, Objective, Question};
use super::question::default_relation;
use super::spoken;
use super::trouble::ParseError;
use super::words::Piece;
use atlas_config::Mode;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{Knob, KnobValues as _, Setting};
use atlas_plan::search::condition::Relation;
use atlas_plan::search::{Condition, metric};

/// Words that are ignored.
const FILLERS: [&str; 43] = [
    "a", "an", "the", "for", "with", "and", "to", "me", "my", "at", "of", "per", "token", "is", "what", "which",
    "that", "lowest", "highest", "most", "best", "using", "in", "i", "can", "it", "way", "please", "show", "find",
    "give", "run", "use", "model", "models", "size", "length", "hardware", "machine", "machines", "setup", "any",
    "each",
];

/// Parses pieces into a question.
pub(super) struct Reader<'k> {
    pieces: std::iter::Peekable<std::vec::IntoIter<Piece>>,
    known: &'k Known,
    question: Question,
    /// Whether a list of hardware has begun.
    listing: bool,
}

impl<'k> Reader<'k> {
    pub(super) fn of(pieces: Vec<Piece>, known: &'k Known) -> Reader<'k> {
        Reader { pieces: pieces.into_iter().peekable(), known, question: Question::default(), listing: false }
    }

    pub(super) fn read(mut self) -> Result<Question, ParseError> {
        while let Some(piece) = self.pieces.next() {
            match piece {
                Piece::Comma => {}
                Piece::Sign(sign) => self.sign_without_metric(sign)?,
                Piece::Word(word) => self.word(&word)?,
            }
        }
        Ok(self.question)
    }

    /// Takes the next piece if it is a sign.
    fn sign(&mut self) -> Option<&'static str> {
        match self.pieces.peek() {
            Some(Piece::Sign(sign)) => {
                let sign = *sign;
                self.pieces.next();
                Some(sign)
            }
            _ => None,
        }
    }

    /// The next piece if it is a word.
    fn peek(&mut self) -> Option<&str> {
        match self.pieces.peek() {
            Some(Piece::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Takes the next piece if it is a word.
    fn take(&mut self) -> Option<String> {
        match self.pieces.next_if(|piece| matches!(piece, Piece::Word(_))) {
            Some(Piece::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Parses a sign without a metric before it: a bound, or an objective as in `max throughput`.
    fn sign_without_metric(&mut self, sign: &'static str) -> Result<(), ParseError> {
        let Some(bound) = self.take() else { return Err(ParseError::NoBound { sign }) };
        match Objective::named(&bound.to_lowercase()) {
            Some(objective) => self.question.objective = Some(objective),
            None => self.bound_without_metric(sign, bound)?,
        }
        Ok(())
    }

    /// Parses a bound without a metric before it: the metric is named after it or implied by the bound.
    fn bound_without_metric(&mut self, sign: &'static str, bound: String) -> Result<(), ParseError> {
        let letters = bound.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        let training = self.question.mode == Some(Mode::Training);
        // `under 50 ms tpot`: the metric follows its bound.
        if let Some(metric) = self.peek().and_then(|word| metric_of(&word.to_lowercase())) {
            let condition = Condition::on(metric, &format!("{sign}{bound}"))?;
            self.pieces.next();
            self.constrain(condition);
            return Ok(());
        }
        let id = match letters {
            _ if bound.starts_with('$') => MetricId::DollarPer1mTokens,
            "d" | "h" | "min" => MetricId::TimeToTrainH,
            "ms" | "us" if training => MetricId::StepTimeMs,
            "s" if training => MetricId::StepTimeMs,
            "ms" | "us" => MetricId::TpotMs,
            "s" => MetricId::TtftMs,
            "kw" | "kW" | "w" | "W" => MetricId::PowerW,
            _ if bound.ends_with('%') => MetricId::Headroom,
            _ => return Err(ParseError::Unclear { bound, sign }),
        };
        let condition = Condition::on(id.metric(), &format!("{sign}{bound}"))?;
        self.constrain(condition);
        Ok(())
    }

    /// Adds a constraint. It replaces an earlier one on the same side of the same metric or knob.
    fn constrain(&mut self, condition: Condition) {
        let same = |known: &Condition| match (known, &condition) {
            (Condition::Fits, Condition::Fits) => true,
            (Condition::Metric(a, left, _), Condition::Metric(b, right, _)) => {
                a == b && bounded_side(*left) == bounded_side(*right)
            }
            (Condition::Knob(a, left, _), Condition::Knob(b, right, _)) => {
                a == b && bounded_side(*left) == bounded_side(*right)
            }
            _ => false,
        };
        self.question.constraints.retain(|known| !same(known));
        self.question.constraints.push(condition);
    }

    fn set(&mut self, knob: Knob, setting: Setting) {
        self.question.settings.retain(|(known, _)| *known != knob);
        self.question.settings.push((knob, setting));
    }

    fn word(&mut self, word: &str) -> Result<(), ParseError> {
        let lower = self.number(word.to_lowercase());
        let bounded = metric_of(&lower).is_some() || Knob::find(&lower).is_some();
        if let Some(Piece::Sign(_)) = self.pieces.peek()
            && bounded
        {
            return self.name_with_relation(word);
        }
        if lower == "on" {
            self.listing = true;
            return Ok(());
        }
        if self.listing && self.hardware(&lower) {
            return Ok(());
        }
        if self.keyword(&lower) {
            return Ok(());
        }
        if self.quantity(&lower) {
            return Ok(());
        }
        if let Some((knob, setting)) = spoken::knob_with_value(&lower) {
            self.set(knob, setting);
            return Ok(());
        }
        if self.name_with_value(&lower)? {
            return Ok(());
        }
        let (target, workload) = (self.known.names_target(&lower), self.known.names_workload(&lower));
        match (target, workload) {
            (_, true) if !FILLERS.contains(&lower.as_str()) => self.question.model.push(lower),
            (true, _) if !FILLERS.contains(&lower.as_str()) => {
                self.question.hardware.push(Hardware { count: None, name: lower });
                self.listing = true;
            }
            _ if FILLERS.contains(&lower.as_str()) || spoken::is_any_accelerator(&lower) => {}
            _ => return self.unresolved_word(word, lower),
        }
        Ok(())
    }

    /// Parses a word that names no metric, knob, target or workload.
    fn unresolved_word(&mut self, word: &str, lower: String) -> Result<(), ParseError> {
        // `mistral-nemo-12b` is a model, although NeMo is software.
        if self.known.model_named(std::slice::from_ref(&lower)).is_some() {
            self.question.model.push(lower);
            return Ok(());
        }
        if let Some((knob, setting)) = spoken::implied_setting(&lower) {
            self.set(knob, setting);
            return Ok(());
        }
        if lower == "batch" {
            return Err(ParseError::Batch);
        }
        let next = self.peek().map(str::to_lowercase);
        if self.known.names_model(&self.question.model, &lower, next.as_deref()) {
            self.question.model.push(lower);
            return Ok(());
        }
        if spoken::is_size(&lower) {
            self.question.model.push(lower);
            return Err(ParseError::no_workload(&self.question.model, self.question.mode, self.known));
        }
        Err(ParseError::unknown(word))
    }

    /// Converts a number before a counted noun to digits: `one h100`, `8x h100`.
    fn number(&mut self, lower: String) -> String {
        let Some(next) = self.peek().map(str::to_lowercase) else { return lower };
        let counted = self.known.names_target(&next) || spoken::knob_of_noun(&next).is_some();
        let times = || lower.strip_suffix(['x', '×']).filter(|count| count.parse::<u32>().is_ok());
        match spoken::digits(&lower).or_else(times).filter(|_| counted || spoken::is_any_accelerator(&next)) {
            Some(digits) => digits.to_owned(),
            None => lower,
        }
    }

    /// Parses a keyword.
    fn keyword(&mut self, lower: &str) -> bool {
        if let Some(objective) = Objective::named(lower) {
            self.question.objective = Some(objective);
            return true;
        }
        match lower {
            "serve" | "serving" | "inference" | "infer" => self.question.mode = Some(Mode::Inference),
            "train" | "training" | "finetune" | "fine-tune" | "finetuning" | "fine-tuning" => {
                self.question.mode = Some(Mode::Training)
            }
            "fits" | "fit" => self.constrain(Condition::Fits),
            _ => return false,
        }
        self.listing = false;
        true
    }

    /// Parses a member of a hardware list: a name, or a number and a name.
    fn hardware(&mut self, lower: &str) -> bool {
        // `8xh100`
        let times = lower.split_once(['x', '×']).and_then(|(count, name)| Some((count.parse::<u32>().ok()?, name)));
        if let Some((count, name)) = times.filter(|(_, name)| {
            // A target's name may itself look like `8xh100`.
            !name.is_empty() && self.known.names_target(name) && !self.known.names_target(lower)
        }) {
            self.question.hardware.push(Hardware { count: Some(count), name: name.to_owned() });
            self.listing = true;
            return true;
        }
        if let Ok(count) = lower.parse::<u32>() {
            let next = self.peek().map(str::to_lowercase);
            let named = |name: String| match name {
                name if spoken::is_any_accelerator(&name) => Some("*".to_owned()),
                name => self.known.names_target(&name).then_some(name),
            };
            if let Some(name) = next.and_then(named) {
                self.pieces.next();
                self.question.hardware.push(Hardware { count: Some(count), name });
                return true;
            }
            return false;
        }
        let named = self.known.names_target(lower) && Objective::named(lower).is_none();
        if named {
            self.question.hardware.push(Hardware { count: None, name: lower.to_owned() });
        }
        named
    }

    /// `10% free`, `1T tokens`, `128 h100`.
    fn quantity(&mut self, lower: &str) -> bool {
        let next = self.peek().map(str::to_lowercase).unwrap_or_default();
        if lower.ends_with('%') && matches!(next.as_str(), "free" | "headroom") {
            let Ok(condition) = Condition::on(MetricId::Headroom.metric(), &format!(">={lower}")) else { return false };
            self.pieces.next();
            self.constrain(condition);
            return true;
        }
        if let Some(tokens) = super::tokens(lower).filter(|_| matches!(next.as_str(), "tokens" | "tok" | "token")) {
            self.pieces.next();
            self.question.tokens = Some(tokens);
            return true;
        }
        let number = lower.starts_with(|c: char| c.is_ascii_digit());
        number && (self.hardware(lower) || self.count_with_noun(lower))
    }

    /// `1000 users`, `8k context`.
    fn count_with_noun(&mut self, lower: &str) -> bool {
        let noun = |reader: &mut Reader<'_>| spoken::knob_of_noun(&reader.peek()?.to_lowercase());
        let Some(knob) = noun(self) else { return false };
        let Ok(setting) = knob.parse(lower, &[]) else { return false };
        self.set(knob, setting);
        // `8k input tokens`, `100 concurrent users`
        while noun(self) == Some(knob) || self.peek().is_some_and(|word| matches!(word, "tokens" | "tok")) {
            self.pieces.next();
        }
        true
    }

    /// Parses a metric or a knob followed by its value without a sign.
    fn name_with_value(&mut self, lower: &str) -> Result<bool, ParseError> {
        let Some(value) = self.peek().map(str::to_owned) else { return Ok(false) };
        if let Some(metric) = metric_of(lower) {
            let sign = match default_relation(metric) {
                Relation::AtLeast => ">=",
                _ => "<=",
            };
            if let Ok(condition) = Condition::on(metric, &format!("{sign}{value}")) {
                self.pieces.next();
                self.constrain(condition);
                return Ok(true);
            }
        }
        let Some(knob) = Knob::find(lower).or_else(|| spoken::knob_of_noun(lower)) else { return Ok(false) };
        // A word that also names a model or hardware is taken as a knob only if a valid value follows.
        match knob.parse(&value, &[]) {
            Ok(setting) => {
                self.pieces.next();
                self.set(knob, setting);
                Ok(true)
            }
            Err(_) if self.known.names_target(lower) || self.known.names_workload(lower) => Ok(false),
            // `price of h100`
            Err(_) if FILLERS.contains(&value.to_lowercase().as_str()) => {
                Err(ParseError::Alone { word: lower.to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Parses a metric or a knob, a sign, and a bound or value.
    fn name_with_relation(&mut self, word: &str) -> Result<(), ParseError> {
        let Some(sign) = self.sign() else { return Err(ParseError::unknown(word)) };
        let Some(value) = self.take() else { return Err(ParseError::NoBound { sign }) };
        self.listing = false;
        if let Some(metric) = metric_of(&word.to_lowercase()) {
            // `=` with a metric is taken as a bound: computed values are almost never exactly equal to a number.
            let sign = match (sign, default_relation(metric)) {
                ("=", Relation::AtLeast) => ">=",
                ("=", _) => "<=",
                _ => sign,
            };
            match (Condition::on(metric, &format!("{sign}{value}")), Objective::named(&word.to_lowercase())) {
                (Ok(condition), _) => self.constrain(condition),
                // `throughput under 20ms`: the bound belongs to another metric.
                (Err(_), Some(objective)) => {
                    self.question.objective = Some(objective);
                    self.bound_without_metric(sign, value)?;
                }
                (Err(error), None) => return Err(error.into()),
            }
            return Ok(());
        }
        let Some(knob) = Knob::find(word) else { return Err(ParseError::unknown(word)) };
        if matches!(sign, "=" | "==") {
            let setting = knob.parse(&value, &[])?;
            self.set(knob, setting);
        } else {
            self.constrain(Condition::parse(&format!("{}{sign}{value}", knob.name()))?);
        }
        Ok(())
    }
}

/// Side that a relation bounds.
fn bounded_side(relation: Relation) -> u8 {
    match relation {
        Relation::AtMost | Relation::Below => 0,
        Relation::AtLeast | Relation::Above => 1,
        Relation::Equal => 2,
        Relation::Different => 3,
    }
}

/// Metric by its name or its label in the TUI.
fn metric_of(lower: &str) -> Option<&'static Metric> {
    let id = match lower {
        "$/1m" | "$/m" | "$/mtok" | "usd/1m" => MetricId::DollarPer1mTokens,
        "$/h" | "$/hour" | "usd/h" => MetricId::UsdPerHour,
        "free" => MetricId::Headroom,
        "tok/s/user" => MetricId::TokensPerSecPerUser,
        "tok/s" => MetricId::TokensPerSec,
        _ => return metric::named(lower),
    };
    Some(id.metric())
}
