//! Schemas of demos and themes.

use serde_json::{Map, Value, json};

use super::shape::{help, list, map, map_of, number, positive, text, texts, word};
use crate::demo::{Action, Pane};
use crate::theme::Role;
use atlas_document::decode::Bounds;
use atlas_plan::knob::KNOBS;

/// A file of demo/.
pub(super) fn demo() -> Value {
    let name_or_names =
        |described: &str| help(json!({"anyOf": [{"type": "string"}, list(json!({"type": "string"}))]}), described);
    let views: Vec<&str> = Action::screens().into_iter().map(|(name, _)| name).collect();
    let panes: Vec<&str> = Pane::NAMES.iter().map(|(name, _)| *name).collect();
    let knobs: Map<String, Value> = KNOBS
        .iter()
        .flat_map(|spec| std::iter::once(spec.name).chain(spec.aliases.iter().copied()).map(|name| (name, spec.help)))
        .map(|(name, described)| (name.to_owned(), json!({"description": described})))
        .collect();
    let action = map(
        &[],
        [
            ("select_target", text("selects a target")),
            ("select_workload", text("selects a workload")),
            ("set", json!({"type": "object", "properties": knobs, "description": "sets knobs"})),
            ("reset", name_or_names("resets knobs; `all` resets all")),
            ("view", word(&views, "shows a view")),
            ("mark", name_or_names("marks targets")),
            ("unmark", name_or_names("unmarks targets")),
            ("baseline", word(&["here", "clear"], "sets the baseline to the current scenario, or clears it")),
            ("focus", word(&panes, "moves the focus")),
        ],
    );
    let step = map(
        &["title", "say"],
        [
            ("title", text("heading of the step")),
            ("say", text("narration")),
            ("do", help(list(action), "actions of the step")),
            ("expect", texts("conditions that the metrics must meet")),
        ],
    );
    map(
        &["name", "title", "workload", "steps"],
        [
            ("name", text("unique name")),
            ("title", text("title of the tour")),
            ("description", text("summary of the tour")),
            ("targets", help(name_or_names(""), "targets of the tour; the first is selected")),
            ("workload", text("workload of the tour")),
            ("sla_p99_ms", positive("p99 latency limit of the hill-climb optimizer [ms]")),
            ("order", positive("sort key among the built-in tours, ascending")),
            (
                "own_files",
                help(json!({"type": "boolean"}), "whether to use the user's own target and workload, if there are any"),
            ),
            ("section", text("heading under which the tour is listed, after all tours without one")),
            ("steps", list(step)),
        ],
    )
}

/// A file of themes/.
pub(super) fn theme() -> Value {
    let color = json!({"type": ["string", "integer"]});
    let attributes = ["bold", "dim", "italic", "underline", "reverse"];
    let plain = |with: Option<Value>| {
        let colors = ["fg", "bg"].map(|name| (name, color.clone()));
        let attributes = attributes.map(|name| (name, json!({"type": "boolean"})));
        map(&[], colors.into_iter().chain(attributes).chain(with.map(|few| ("ansi16", few))))
    };
    let few = json!({"anyOf": [color, plain(None)]});
    let style = |described: String| json!({"anyOf": [color, plain(Some(few.clone()))], "description": described});
    let roles: Vec<(&'static str, Value)> =
        Role::ALL.iter().map(|role| (role.name(), style(role.name().to_owned()))).collect();
    let palette = map_of(json!({"anyOf": [color, list(color.clone())]}));
    map(
        &["name"],
        [
            ("name", text("unique name")),
            ("description", text("one line about the theme")),
            ("order", number(Bounds { max: 1e6, ..Bounds::NATURAL }, "sort key among the themes, ascending")),
            ("extends", text("theme that provides the roles that this one omits")),
            ("palette", help(palette, "named colors: one value, or one each for 24-bit, 256 and 16 colors")),
            ("roles", help(map(&[], roles), "styles by role")),
        ],
    )
}
