//! Theme files.
//!
//! ```yaml
//! name: dusk
//! extends: dark              # optional: base theme for roles that are not set here
//! palette:                   # named colors; a list gives one each for true color, 256 and 16 colors
//!   sky: ["#86b3e6", 110, cyan]
//! roles:
//!   accent: sky              # a color, or
//!   selection: { fg: "#ffffff", bg: 24, bold: true, ansi16: { reverse: true } }
//! ```

use std::sync::Arc;

use ratatui::style::{Color, Modifier, Style};

use super::color::{self, ColorDepth};
use super::{Role, Theme, plain};

use atlas_catalog::shipped::Text;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::node::{Node, Position};
use atlas_document::suggestion::did_you_mean;
use atlas_document::{Diagnostic, Diagnostics, Severity};

const ATTRIBUTES: [(&str, Modifier); 5] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underline", Modifier::UNDERLINED),
    ("reverse", Modifier::REVERSED),
];

impl Theme {
    /// Reads one theme for this color depth. Adds problems to `diagnostics`; returns `None` if one of them is an error.
    /// `known` are the themes that it may extend.
    pub fn read(
        file: &Arc<str>,
        text: &Text,
        depth: ColorDepth,
        known: &[Arc<Theme>],
        diagnostics: &mut Diagnostics,
    ) -> Option<Theme> {
        let mut problems = Diagnostics::new();
        let theme = text.tree(file, &mut problems).and_then(|node| document(file, &node, depth, known, &mut problems));
        let broken = problems.has_errors();
        diagnostics.extend(problems);
        theme.filter(|_| !broken)
    }
}

fn document(
    file: &Arc<str>,
    node: &Node,
    depth: ColorDepth,
    known: &[Arc<Theme>],
    problems: &mut Diagnostics,
) -> Option<Theme> {
    let mut fields = Fields::open(file, "", node, problems)?;
    let name = fields.required_text("name");
    let description = fields.text("description").unwrap_or_default();
    let order = fields.number("order", Bounds { min: 0.0, max: 1e6, whole: true });
    let base = parent(&mut fields, known);
    let palette = fields.map("palette", palette).unwrap_or_default();
    let context = Context { palette: &palette, depth };
    let said = fields.map("roles", |roles| context.roles(roles)).unwrap_or_default();
    if !fields.finish() {
        return None;
    }
    let mut styles: Vec<Style> = Vec::with_capacity(Role::ALL.len());
    for role in Role::ALL {
        let own = said.iter().find(|(known, _)| known == role).map(|(_, style)| *style);
        let inherited = || match (&base, role.parent()) {
            (Some(base), _) => base.style(*role),
            // Parents are declared before their children, so their styles are already known.
            (None, Some(parent)) => styles.get(parent as usize).copied().unwrap_or_default(),
            (None, None) => Style::new().add_modifier(plain(*role)),
        };
        styles.push(match depth {
            ColorDepth::Mono => Style::new().add_modifier(plain(*role)),
            _ => own.unwrap_or_else(inherited),
        });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
    let order = order.map_or(u32::MAX, |order| order as u32);
    Some(Theme { name: name?, description, order, styles: styles.into(), shipped: None })
}

fn parent(fields: &mut Fields<'_>, known: &[Arc<Theme>]) -> Option<Arc<Theme>> {
    let wanted = fields.text("extends")?;
    let found = known.iter().find(|theme| theme.name() == wanted).cloned();
    if found.is_none() {
        let names = known.iter().map(|theme| theme.name());
        let help = did_you_mean(&wanted, names);
        fields.error("extends", format!("unknown theme `{wanted}`"), help);
    }
    found
}

/// A name and its colors, for the highest color depth first.
type Named = (String, Vec<Color>);

fn palette(fields: &mut Fields<'_>) -> Vec<Named> {
    let mut palette: Vec<Named> = Vec::new();
    for entry in fields.all() {
        let nodes = entry.value.items().unwrap_or(std::slice::from_ref(&entry.value));
        let path = format!("palette.{}", entry.key);
        if color::parse(&entry.key).is_some() {
            let message = format!("`{}` is already the name of a color", entry.key);
            report(fields, entry.key_at, &path, message, Some("choose another name".to_owned()));
        }
        if nodes.is_empty() || nodes.len() > 3 {
            let message = format!("found {}, expected one to three colors", entry.value.describe());
            let help = Some("one each for true color, 256 and 16 colors".to_owned());
            report(fields, entry.value.at, &path, message, help);
        }
        let colors: Vec<Color> = nodes.iter().filter_map(|node| plain_color(fields, node, &path, &[])).collect();
        palette.push((entry.key.to_string(), colors));
    }
    palette
}

/// Parses a color by value or ANSI name. `palette` is only used for "did you mean".
fn plain_color(fields: &mut Fields<'_>, node: &Node, path: &str, palette: &[Named]) -> Option<Color> {
    let written = node.text().map_or_else(|| node.describe(), str::to_owned);
    let color = color::parse(&written);
    if color.is_none() {
        let mut names: Vec<&str> = palette.iter().map(|(name, _)| name.as_str()).collect();
        for name in color::names() {
            names.push(name);
        }
        let help = did_you_mean(&written, names);
        let message = format!(
            "found {}, expected a color: \"#rrggbb\", an ANSI name such as red or bright-blue, default, 0 to 255{}",
            node.describe(),
            if palette.is_empty() { "" } else { ", or a name from `palette`" }
        );
        report(fields, node.at, path, message, help);
    }
    color
}

fn report(fields: &mut Fields<'_>, at: Position, path: &str, message: String, help: Option<String>) {
    let file = Arc::clone(fields.file());
    fields.diagnostics().push(Diagnostic { severity: Severity::Error, file, at, path: path.to_owned(), message, help });
}

struct Context<'a> {
    palette: &'a [Named],
    depth: ColorDepth,
}

impl Context<'_> {
    fn roles(&self, fields: &mut Fields<'_>) -> Vec<(Role, Style)> {
        let mut said = Vec::new();
        for entry in fields.all() {
            let path = format!("roles.{}", entry.key);
            let style = self.style(fields, &entry.value, &path);
            match Role::from_name(&entry.key) {
                Some(role) => said.extend(style.map(|style| (role, style))),
                None => {
                    let help = did_you_mean(&entry.key, Role::ALL.iter().map(|role| role.name()));
                    let file = Arc::clone(fields.file());
                    fields.diagnostics().push(Diagnostic {
                        severity: Severity::Warning,
                        file,
                        at: entry.key_at,
                        path,
                        message: "unknown role".to_owned(),
                        help,
                    });
                }
            }
        }
        said
    }

    /// Decodes a color, or a mapping of colors and attributes.
    fn style(&self, fields: &mut Fields<'_>, node: &Node, path: &str) -> Option<Style> {
        if node.entries().is_none() {
            return self.color(fields, node, path).map(|color| Style::new().fg(color));
        }
        let file = Arc::clone(fields.file());
        let mut below = Fields::open(&file, path, node, fields.diagnostics())?;
        let mut style = Style::new();
        if let Some(color) = below.node("fg") {
            style.fg = self.color(&mut below, color, &format!("{path}.fg"));
        }
        if let Some(color) = below.node("bg") {
            style.bg = self.color(&mut below, color, &format!("{path}.bg"));
        }
        for (name, modifier) in ATTRIBUTES {
            if below.boolean(name) == Some(true) {
                style = style.add_modifier(modifier);
            }
        }
        // With 16 colors, which users can change, some styles need a different definition.
        let few = below.node("ansi16").and_then(|node| self.style(&mut below, node, &format!("{path}.ansi16")));
        below.finish();
        Some(few.filter(|_| self.depth == ColorDepth::Ansi16).unwrap_or(style))
    }

    fn color(&self, fields: &mut Fields<'_>, node: &Node, path: &str) -> Option<Color> {
        let named = node.text().and_then(|text| self.palette.iter().find(|(name, _)| name == text));
        let color = match named {
            Some((_, colors)) => {
                let richness = match self.depth {
                    ColorDepth::TrueColor => 0,
                    ColorDepth::Ansi256 => 1,
                    ColorDepth::Ansi16 | ColorDepth::Mono => 2,
                };
                *colors.get(richness).or(colors.last())?
            }
            None => plain_color(fields, node, path, self.palette)?,
        };
        Some(self.depth.nearest(color))
    }
}
