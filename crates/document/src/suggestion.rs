//! Suggestions for misspelled names.

/// Returns the known name nearest to `found` by edit distance, if it is close enough to be a typing error.
#[must_use]
pub fn nearest<'w>(found: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let lower = found.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.chars().count().min(found.chars().count()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
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
}
