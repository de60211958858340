#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::tui::app::Overlay;
use crate::tui::message::Effect;
use crate::tui::testing::Hands;
use atlas_document::Sources;

/// The shipped catalog, serving 70B.
fn serving() -> Hands {
    let mut hands = Hands::of(&Sources::built_in());
    hands.keys(":serve 70b<Enter>");
    hands
}

#[test]
fn a_question_is_answered_and_enter_applies_what_the_answer_proposes() {
    let mut hands = serving();
    let before = hands.app.now.setup.clone();
    hands.keys("Awhat if tp=8?<Enter>").work();
    assert!(hands.text().contains("With tp"), "{}", hands.text());
    assert!(hands.text().contains("Enter applies"), "{}", hands.text());
    hands.keys("<Enter>");
    assert!(hands.app.overlay.is_none() && hands.app.now.setup != before, "{}", hands.text());
    hands.keys("u");
    assert_eq!(hands.app.now.setup, before, "one undo takes it back");
}

#[test]
fn the_command_line_asks_with_ask_and_with_a_question() {
    for typed in [":ask what limits throughput?<Enter>", ":what limits throughput?<Enter>"] {
        let mut hands = serving();
        hands.keys(typed).work();
        assert!(hands.text().contains("bound by"), "{typed}: {}", hands.text());
    }
}

#[test]
fn earlier_questions_come_back_and_escape_closes() {
    let mut hands = serving();
    hands.keys("Awhat does mfu mean?<Enter>").work();
    hands.keys("what does tp mean?<Enter>").work();
    hands.keys("<Up><Up>");
    assert_eq!(hands.app.assistant.line.text(), "what does mfu mean?");
    hands.keys("<Down><Down>");
    assert_eq!(hands.app.assistant.line.text(), "");
    hands.keys("<Esc>");
    assert!(hands.app.overlay.is_none());
    hands.keys("A");
    assert_eq!((hands.app.assistant.turns.len(), &hands.app.overlay), (2, &Some(Overlay::Assistant)));
}

#[test]
fn what_is_not_understood_lists_what_can_be_asked_and_is_kept() {
    let mut hands = serving();
    hands.keys("Awhy is the sky blue?<Enter>").work();
    assert!(hands.text().contains("`sky` is not known") && hands.text().contains("You can ask"), "{}", hands.text());
}

#[test]
fn the_answer_is_copied_with_its_commands() {
    let mut hands = serving();
    hands.keys("Awhat limits throughput?<Enter>").work();
    hands.effects.clear();
    hands.keys("<C-y>");
    let copied = hands.effects.iter().find_map(|effect| match effect {
        Effect::Copy { text, .. } => Some(text.clone()),
        _ => None,
    });
    assert!(copied.is_some_and(|text| text.contains("atlas sensitivity")));
}

#[test]
fn a_long_answer_scrolls_from_its_first_line() {
    let mut hands = serving();
    hands.app.size = (80, 24);
    hands.keys("Awhat limits throughput?<Enter>").work();
    assert!(hands.text().contains("> what limits throughput?"), "{}", hands.text());
    hands.keys("<C-d><C-d><C-d>");
    assert!(hands.text().contains("Enter applies"), "{}", hands.text());
}
