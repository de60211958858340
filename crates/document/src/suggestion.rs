//! Suggestions for misspelled names.

/// Returns the known name nearest to `found` by edit distance, if it is close enough to be a typing error: at most a third
/// of the letters differ. A single letter is too short to be misspelled.
#[must_use]
pub fn nearest<'w>(found: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let lower = found.to_lowercase();
    known
        .into_iter()
        .filter(|name| name.chars().count().min(found.chars().count()) > 1)
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| 3 * distance <= name.chars().count().max(found.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the known name that differs from `found` in one or two letters, for long lists of similar names.
#[must_use]
pub fn misspelled<'w>(found: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    const MOST: usize = 2;
    let near = known.into_iter().filter(|name| name.len().abs_diff(found.len()) <= MOST);
    let distances = near.map(|name| (strsim::damerau_levenshtein(found, name), name));
    let close = distances.filter(|(distance, _)| (1..=MOST).contains(distance) && 3 * distance <= found.len());
    close.min().map(|(_, name)| name)
}

/// Suggests the nearest of the known names, as the help of a diagnostic.
#[must_use]
pub fn did_you_mean<'w>(found: &str, known: impl IntoIterator<Item = &'w str>) -> Option<String> {
    nearest(found, known).map(|name| format!("did you mean `{name}`?"))
}

/// Returns the end of an error message that suggests `nearest`, or an empty string without a suggestion.
#[must_use]
pub fn clause(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_typing_errors_get_a_suggestion() {
        let known = ["hidden_size", "n_layers"];
        assert_eq!(did_you_mean("hidden_sise", known).as_deref(), Some("did you mean `hidden_size`?"));
        assert_eq!(clause(nearest("Hidden_sise", known)), "; did you mean `hidden_size`?");
        assert_eq!(did_you_mean("zzzzzz", known), None);
        assert_eq!(clause(nearest("zzzzzz", known)), "");
    }

    #[test]
    fn names_that_share_few_letters_are_no_suggestion() {
        let known = ["r", "wacc", "serve", "bpw", "co2", "tp", "vllm", "rail"];
        for found in ["7", "rack", "save", "buy", "foo", "4", "pp", "q"] {
            assert_eq!(nearest(found, known), None, "{found}");
        }
        for (found, name) in [("vlm", "vllm"), ("rial", "rail"), ("server", "serve")] {
            assert_eq!(nearest(found, known), Some(name), "{found}");
        }
    }
}
