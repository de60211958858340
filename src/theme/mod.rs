//! Themes: a style for every role of a part of the screen, read from a YAML file.
//!
//! Views use roles, never colors. A theme is read once for the color depth of the terminal, so that drawing only looks
//! up styles. Backgrounds are painted for selections and flashes only, because every painted cell costs bytes on every
//! frame, and text is always readable on the user's own background.

pub mod color;
mod file;
mod glyphs;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ratatui::style::{Modifier, Style};

pub use color::ColorDepth;
pub use glyphs::Glyphs;

use atlas_catalog::shipped;
use atlas_catalog::shipped::{Document, Text};
use atlas_core::sort;
use atlas_document::sources::read_text;
use atlas_document::{Diagnostic, Diagnostics, Node, Origin, Position, Severity};

/// Declares the roles: documentation, variant, name in a theme, and the role whose style is used if a theme defines
/// none.
macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $name:literal < $parent:expr,)*) => {
        /// The role of a part of the screen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Role {
            $($(#[$doc])* $role,)*
        }

        impl Role {
            /// Every role.
            pub const ALL: &[Role] = &[$(Role::$role,)*];

            /// Its name in a theme: `border-focused`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Role::$role => $name,)* }
            }

            /// The role whose style is used if a theme defines none for this one. It is declared earlier.
            #[must_use]
            pub const fn parent(self) -> Option<Role> {
                match self { $(Role::$role => $parent,)* }
            }
        }
    };
}

roles! {
    /// Running text.
    Text = "text" < None,
    /// Secondary text.
    Dim = "dim" < Some(Role::Text),
    /// Highlights: scroll marks, progress.
    Accent = "accent" < Some(Role::Text),
    /// Frames.
    Border = "border" < Some(Role::Dim),
    /// The frame that has the focus.
    BorderFocused = "border-focused" < Some(Role::Accent),
    /// Titles of frames.
    Title = "title" < Some(Role::Text),
    /// The title of the frame that has the focus.
    TitleFocused = "title-focused" < Some(Role::Accent),
    /// Headings inside a pane.
    Heading = "heading" < Some(Role::Title),
    /// The selected row of the focused pane.
    Selection = "selection" < None,
    /// The selected row of other panes.
    SelectionDim = "selection-dim" < None,
    /// Values of metrics and fields.
    Value = "value" < Some(Role::Text),
    /// A changed knob.
    Changed = "changed" < Some(Role::Accent),
    /// A target that is marked.
    Mark = "mark" < Some(Role::Accent),
    /// Text being typed.
    Input = "input" < Some(Role::Value),
    /// A change for the better.
    Good = "good" < Some(Role::Text),
    /// A change for the worse.
    Bad = "bad" < Some(Role::Text),
    /// Warnings.
    Warn = "warn" < Some(Role::Bad),
    /// Errors.
    Error = "error" < Some(Role::Bad),
    /// The best value of a row.
    Best = "best" < Some(Role::Good),
    /// The baseline or reference.
    Baseline = "baseline" < Some(Role::Dim),
    /// Entries that just changed on disk.
    Flash = "flash" < None,
    /// Keys in the footer and the help.
    Key = "key" < Some(Role::Accent),
    /// What keys do, in the footer.
    Hint = "hint" < Some(Role::Dim),
    /// Name of the program in the header line.
    Brand = "brand" < Some(Role::Accent),
    /// First color of bars and series.
    Bar1 = "bar-1" < Some(Role::Accent),
    /// Second color of bars and series.
    Bar2 = "bar-2" < Some(Role::Good),
    /// Third color.
    Bar3 = "bar-3" < Some(Role::Changed),
    /// Fourth color.
    Bar4 = "bar-4" < Some(Role::Baseline),
    /// Fifth color.
    Bar5 = "bar-5" < Some(Role::Bad),
    /// Sixth color.
    Bar6 = "bar-6" < Some(Role::Dim),
}

impl Role {
    /// Returns the role with this name. Underscores are accepted in place of hyphens.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Role> {
        let name = name.replace('_', "-");
        Role::ALL.iter().copied().find(|role| role.name() == name)
    }
}

/// All themes.
#[derive(Debug, Clone, Copy)]
pub struct Themes;

impl Themes {
    /// Loads every theme for this color depth: the shipped ones, then those in `themes/` under the user's configuration
    /// directory, which replace earlier ones of the same name. An invalid theme is reported, and an earlier one of the
    /// same name stays in effect. Returns at least one theme.
    #[must_use]
    pub fn load(config_dir: Option<&Path>, depth: ColorDepth) -> (Vec<Arc<Theme>>, Diagnostics) {
        let mut themes = Vec::new();
        let mut problems = Diagnostics::new();
        for document in shipped::documents("themes") {
            themes.extend(Theme::shipped(document, depth).map(Arc::new));
        }
        sort::by_key(&mut themes, |theme| theme.order);
        for path in Themes::watched(config_dir).iter().flat_map(|dir| files_in(dir)) {
            let file: Arc<str> = path.display().to_string().into();
            match read_text(&path) {
                Ok(text) => insert_or_replace(&mut themes, &file, &text.into(), depth, &mut problems),
                Err(message) => problems.push(Diagnostic {
                    severity: Severity::Error,
                    file,
                    at: Position::default(),
                    path: String::new(),
                    message,
                    help: None,
                }),
            }
        }
        if themes.is_empty() {
            themes.push(Arc::new(Theme::plain()));
        }
        (themes, problems)
    }

    /// The directories from which themes are read, to be watched for changes. They need not exist.
    #[must_use]
    pub fn watched(config_dir: Option<&Path>) -> Vec<PathBuf> {
        config_dir.map(|dir| dir.join("themes")).into_iter().collect()
    }
}

/// Colors and attributes by role.
#[derive(Debug, Clone)]
pub struct Theme {
    name: String,
    description: String,
    order: u32,
    /// By [`Role`], in the order of [`Role::ALL`]. Those of shipped themes are read when first used, because most
    /// shipped themes are only listed by name.
    styles: OnceLock<Vec<Style>>,
    /// The document of a shipped theme, and the color depth for which to read it.
    shipped: Option<(&'static Document, ColorDepth)>,
}

impl Theme {
    /// A shipped theme, which needs no validation; `None` if it has no name.
    fn shipped(document: &'static Document, depth: ColorDepth) -> Option<Theme> {
        let [name, description, order] = document.part().values(["name", "description", "order"]);
        let text = |node: Option<Node>| node.as_ref().and_then(Node::text).map(str::to_owned);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as the file reader bounds it")]
        let order = order.as_ref().and_then(Node::number).map_or(u32::MAX, |order| order as u32);
        let description = text(description).unwrap_or_default();
        Some(Theme { name: text(name)?, description, order, styles: OnceLock::new(), shipped: Some((document, depth)) })
    }

    /// A theme that uses only attributes. It needs no file and works on every terminal.
    #[must_use]
    pub fn plain() -> Theme {
        let style = |role: &Role| Style::new().add_modifier(plain(*role));
        Theme {
            name: "plain".to_owned(),
            description: "No colors".to_owned(),
            order: u32::MAX,
            styles: Role::ALL.iter().map(style).collect::<Vec<_>>().into(),
            shipped: None,
        }
    }

    /// The name of the theme that suits the background of the terminal according to `COLORFGBG`, which some terminals
    /// set (`15;0`); `dark` if it is not set.
    #[must_use]
    pub fn suited(lookup: impl Fn(&str) -> Option<String>) -> &'static str {
        let background = lookup("COLORFGBG").and_then(|value| value.rsplit(';').next()?.trim().parse::<u8>().ok());
        match background {
            Some(7 | 9..=15) => "light",
            _ => "dark",
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The style of a role.
    #[must_use]
    pub fn style(&self, role: Role) -> Style {
        let read = || {
            let (document, depth) = self.shipped?;
            let file = format!("{}{}", Origin::BUILT_IN, document.path).into();
            let theme = Theme::read(&file, &Text::Shipped(document), depth, &[], &mut Diagnostics::new())?;
            theme.styles.into_inner()
        };
        let styles = self.styles.get_or_init(|| read().unwrap_or_default());
        styles.get(role as usize).copied().unwrap_or_default()
    }
}

/// The attributes of a role without colors. Dimness alone carries no meaning, because some terminals do not show it.
fn plain(role: Role) -> Modifier {
    match role {
        Role::Selection => Modifier::REVERSED,
        Role::SelectionDim | Role::Input | Role::Heading => Modifier::UNDERLINED,
        Role::Flash => Modifier::REVERSED.union(Modifier::BOLD),
        Role::Error | Role::Warn | Role::Bad => Modifier::BOLD.union(Modifier::UNDERLINED),
        Role::BorderFocused
        | Role::TitleFocused
        | Role::Changed
        | Role::Mark
        | Role::Best
        | Role::Key
        | Role::Brand
        | Role::Accent => Modifier::BOLD,
        Role::Dim | Role::Border | Role::Hint => Modifier::DIM,
        _ => Modifier::empty(),
    }
}

/// Reads a theme and replaces the one of the same name, or appends it.
fn insert_or_replace(
    themes: &mut Vec<Arc<Theme>>,
    file: &Arc<str>,
    text: &Text,
    depth: ColorDepth,
    problems: &mut Diagnostics,
) {
    let Some(theme) = Theme::read(file, text, depth, themes, problems) else { return };
    match themes.iter_mut().find(|known| known.name == theme.name) {
        Some(known) => *known = Arc::new(theme),
        None => themes.push(Arc::new(theme)),
    }
}

/// YAML files of a directory, sorted by name, without hidden ones.
fn files_in(dir: &Path) -> Vec<PathBuf> {
    let is_theme = |path: &PathBuf| {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        !hidden && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_theme).collect();
    sort::ascending(&mut files);
    files
}

#[cfg(test)]
mod tests;
