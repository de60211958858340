//! Metrics that the program names itself, looked up while it compiles.

use super::metric::{METRICS, Metric};

impl Metric {
    /// The metric of a name that the program itself uses. In a `const`, a name that no metric has does not compile.
    #[must_use]
    #[expect(clippy::indexing_slicing, clippy::panic, reason = "evaluated while compiling, where both are errors")]
    pub const fn known(name: &str) -> &'static Metric {
        let mut at = 0;
        while at < METRICS.len() {
            if same(METRICS[at].name.as_bytes(), name.as_bytes()) {
                return &METRICS[at];
            }
            at += 1;
        }
        panic!("no metric has this name")
    }
}

#[expect(clippy::indexing_slicing, reason = "both are as long as the index goes")]
const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
