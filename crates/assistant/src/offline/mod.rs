//! Answers without a network: a natural-language question is parsed into topic, metric and subject. The engines compute
//! the answer, which ends with the commands that reproduce it.
//!
//! The subject (workload, hardware, settings, constraints) is parsed with the query grammar of the command line, so
//! that words have the same meaning everywhere. A word that is not recognized is reported, never ignored.

mod case;
mod change;
mod failures;
mod fitting;
mod floor;
mod idioms;
mod improving;
mod knowledge;
mod left_over;
mod meaning;
mod mtbf;
mod named_metric;
mod phrasing;
mod power;
mod rank;
mod rephrased;
mod reply;
mod subject;
mod terms;
mod topic;
mod users;
mod value;
mod what_if;
mod why;
mod words;

pub(crate) use case::Case;
pub use case::Context;
pub(crate) use rank::{best, where_flags};
pub use reply::{About, Block, Reply, ReplyKind, ReportedMetric, Suggestion};

use atlas_plan::search::Gauge;

use crate::ParseError;
use subject::ParsedQuestion;
use topic::Topic;

/// Example questions, one of each kind.
pub const EXAMPLES: [&str; 21] = [
    "why is TTFT high?",
    "what if prices fall by a third?",
    "what if tp=8?",
    "what is the smallest change that fits?",
    "does llama 70b fit on 8 h100?",
    "how many h100 do I need to serve llama 70b with tpot under 50ms?",
    "how many users can I serve at 30 ms tpot?",
    "which is cheapest for serving llama 70b on h100, h200, mi300x?",
    "compare h100 and h200",
    "compare vllm and sglang",
    "what limits throughput?",
    "where does the time go?",
    "where does the memory go?",
    "what matters most for cost?",
    "how can I make it faster?",
    "what if a node fails every day?",
    "how do I get tpot under 20ms?",
    "how much does it cost to train llama 8b on 64 h100?",
    "how accurate is this?",
    "what does MFU mean?",
    "which models are there?",
];

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The question is not recognized.
    #[error("{reason}\n{}", answerable_questions())]
    Unknown {
        /// The part that is not recognized, and why.
        reason: String,
    },
    /// The subject is not recognized.
    #[error("{trouble}\n{}", answerable_questions())]
    Subject {
        /// Error of the grammar.
        trouble: ParseError,
    },
    /// Target or workload cannot be found.
    #[error("{0}")]
    Files(String),
    /// The scenario cannot be resolved.
    #[error("{0}")]
    Scenario(String),
    /// The question is recognized, but cannot be answered.
    #[error("{0}")]
    Nothing(String),
}

impl From<ParseError> for Refusal {
    fn from(trouble: ParseError) -> Refusal {
        match trouble {
            ParseError::NoWorkload { .. } | ParseError::NoTarget { .. } => Refusal::Nothing(trouble.to_string()),
            trouble => Refusal::Subject { trouble },
        }
    }
}

fn answerable_questions() -> String {
    let lines: Vec<String> = EXAMPLES.iter().map(|example| format!("    {example}")).collect();
    format!("  You can ask, for example:\n{}", lines.join("\n"))
}

/// Whether a line is a natural-language question rather than a line of the query grammar.
#[must_use]
pub fn is_question(line: &str) -> bool {
    topic::take(&mut words::Words::of(line)).is_some_and(|topic| topic != Topic::Rank)
}

/// Answers a question. `gauge` cancels searches.
///
/// # Errors
/// The question or its subject is not recognized, or the scenario cannot be resolved.
pub fn answer(line: &str, context: &Context<'_>, gauge: &Gauge) -> Result<Reply, Refusal> {
    if rephrased::is_of_quality(&words::Words::of(line)) {
        return Err(Refusal::Nothing(
            "speed, cost, power and memory are predicted, but not model quality; `what if precision=fp8` shows how \
             a number format changes performance, while its effect on quality has to be evaluated with the model"
                .to_owned(),
        ));
    }
    let question = ParsedQuestion::of(line, context)?;
    let reply = match question.topic {
        Topic::Meaning => meaning::meaning(&question, context),
        Topic::List => knowledge::list(&question, context),
        Topic::Guide => knowledge::guide(&question),
        Topic::Failures => failures::failures(&question, context),
        Topic::WhatIf => what_if::what_if(&question, context),
        Topic::Fit => fitting::fit(&question, context, gauge),
        Topic::Count => fitting::smallest_node_count(&question, context, gauge),
        Topic::Users => users::users(&question, context),
        Topic::Longest => users::longest(&question, context),
        Topic::LargestModel => fitting::largest_model(&question, context, gauge),
        Topic::Rank => rank::rank(&question, context, gauge),
        Topic::Compare => rank::compare(&question, context),
        Topic::Value => value::value(&question, context),
        Topic::Trust => value::trust(&question, context),
        Topic::Origin => value::origin(&question, context),
        Topic::Limits => why::limits(&question, context),
        Topic::Time | Topic::Memory => why::breakdown(&question, context),
        Topic::Why => why::why(&question, context),
        Topic::Improve => improving::improve(&question, context),
        Topic::Sensitivity => improving::sensitivity(&question, context),
    };
    reply.map(|mut reply| {
        let readings = question.readings.into_iter().map(Block::Text);
        reply.answer.splice(0..0, readings);
        Reply { question: line.trim().to_owned(), ..reply }
    })
}
