//! Outputs of Jupyter notebooks: text printed by cells, and displayed tables.

use serde_json::Value;

/// Whether a document is a notebook.
pub(crate) fn is_notebook(document: &Value) -> bool {
    document.get("nbformat").is_some() && document.get("cells").is_some_and(Value::is_array)
}

/// Returns the text of the outputs of each cell that has any, in order.
pub(crate) fn outputs(document: &Value) -> Vec<String> {
    let cells = document.get("cells").and_then(Value::as_array).into_iter().flatten();
    let outputs = cells.map(|cell| {
        let mut text = String::new();
        for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
            let data = output.get("data");
            let plain = output.get("text").or_else(|| data.and_then(|data| data.get("text/plain")));
            let html = data.and_then(|data| data.get("text/html"));
            // The plain text of a table is only a placeholder; other HTML is styled plain text.
            match (html.map(joined), plain) {
                (Some(html), _) if html.contains("<table") => text += &without_tags(&html),
                (_, Some(plain)) => text += &joined(plain),
                (Some(html), None) => text += &without_tags(&html),
                (None, None) => continue,
            }
            // Stream outputs of one cell may be split anywhere; other outputs are complete.
            if output.get("output_type").and_then(Value::as_str) != Some("stream") {
                text.push('\n');
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    });
    outputs.filter(|text| !text.is_empty()).collect()
}

/// Returns a text that is stored as one string or as a list of lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// Converts HTML to text, with table rows as lines and cells separated by bars. Only `<pre>` keeps its newlines.
fn without_tags(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let (mut rest, mut preformatted) = (html, false);
    while let Some((text, tag)) = rest.split_once('<') {
        out.extend(text.chars().filter(|c| preformatted || *c != '\n'));
        let Some((tag, after)) = tag.split_once('>') else { break };
        match tag.trim_start().split([' ', '\n']).next().unwrap_or_default() {
            "/tr" | "/div" | "/p" | "br" | "br/" | "/table" => out.push('\n'),
            "td" | "th" => out.push_str("| "),
            "/td" | "/th" => out.push(' '),
            "pre" => preformatted = true,
            "/pre" => preformatted = false,
            _ => {}
        }
        rest = after;
    }
    if !rest.contains('<') {
        out.push_str(rest);
    }
    out.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn notebook_outputs_are_extracted_as_text() {
        let notebook = json!({"nbformat": 4, "cells": [
            {"cell_type": "markdown", "source": ["step: 1"]},
            {"cell_type": "code", "outputs": [
                {"output_type": "stream", "text": ["a\n", "b"]},
                {"output_type": "stream", "text": "c"},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
                {"output_type": "display_data", "data": {"text/plain": "<obj>", "text/html": [
                    "<table>\n<tr><th>Step</th><th>Training Loss</th></tr>\n", "<tr><td>10</td><td>2.5</td></tr></table>"]}},
            ]},
        ]});
        assert!(is_notebook(&notebook));
        assert_eq!(outputs(&notebook), ["a\nbc| Step | Training Loss \n| 10 | 2.5 \n\n\n"]);
    }

    #[test]
    fn lines_of_preformatted_outputs_are_kept() {
        let lines = "{'loss': 2.5, 'epoch': 0.1}\n{'loss': 2.4, 'epoch': 0.2}\n";
        let html = format!("<pre style=\"white-space:pre\"><span>{}</span></pre>\n", lines.replace("'", "&#x27;"));
        let shown = |data: Value| {
            outputs(&json!({"nbformat": 4, "cells": [
                {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": data}]},
            ]}))
        };
        assert_eq!(shown(json!({"text/html": html, "text/plain": lines})), [format!("{lines}\n")]);
        assert_eq!(shown(json!({"text/html": html})), [format!("{lines}\n\n")]);
    }
}
