//! File format of an output file, chosen by its extension.

use std::path::Path;

use crate::chart::drawing::{self, Drawing, Item};
use crate::chart::png;
use crate::study::Block;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Markdown.
    Markdown,
    /// A self-contained HTML file without network access.
    Html,
    /// PDF.
    Pdf,
    /// All charts in one picture.
    Png,
    /// Comma-separated values.
    Csv,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [FileFormat; 7] = [
        FileFormat::Markdown,
        FileFormat::Html,
        FileFormat::Pdf,
        FileFormat::Png,
        FileFormat::Csv,
        FileFormat::Json,
        FileFormat::Yaml,
    ];

    /// Extensions of the format, the usual one first.
    #[must_use]
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            FileFormat::Markdown => &["md", "markdown"],
            FileFormat::Html => &["html", "htm"],
            FileFormat::Pdf => &["pdf"],
            FileFormat::Png => &["png"],
            FileFormat::Csv => &["csv"],
            FileFormat::Json => &["json"],
            FileFormat::Yaml => &["yaml", "yml"],
        }
    }

    /// Returns the format that the extension of `path` stands for, out of the `possible` ones.
    ///
    /// # Errors
    /// The extension stands for none of them; the message lists them.
    pub fn of(path: &Path, possible: &[FileFormat]) -> Result<FileFormat, String> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let means =
            |format: &&FileFormat| format.extensions().iter().any(|known| known.eq_ignore_ascii_case(extension));
        possible.iter().find(means).copied().ok_or_else(|| {
            let known: Vec<String> =
                possible.iter().filter_map(|format| Some(format!(".{}", format.extensions().first()?))).collect();
            let found =
                if extension.is_empty() { "no extension".to_owned() } else { format!("extension .{extension}") };
            format!("{}: {found}: expected one of {}", path.display(), known.join(", "))
        })
    }
}

/// Paints all charts of `blocks` below each other as one PNG; `None` without charts.
///
/// # Errors
/// Returns the error of the PNG encoder.
pub fn picture(blocks: &[Block]) -> Option<Result<Vec<u8>, ::png::EncodingError>> {
    /// Vertical space between charts.
    const GAP: f64 = 26.0;
    let drawn = blocks.iter().filter_map(|block| match block {
        Block::Plot(plot) => drawing::plot(plot, 760.0, 420.0),
        Block::Bars(bars) => drawing::bars(bars, 760.0),
        Block::Picture(drawing) => Some(drawing.clone()),
        _ => None,
    });
    let mut all: Option<Drawing> = None;
    for one in drawn.map(Drawing::complete) {
        let Some(whole) = &mut all else {
            all = Some(Drawing { title: String::new(), ..one });
            continue;
        };
        let above = whole.height + GAP;
        whole.width = whole.width.max(one.width);
        whole.height = above + one.height;
        whole.items.extend(one.items.into_iter().map(|mut item| {
            match &mut item {
                Item::Line(_, points) => points.iter_mut().for_each(|(_, y)| *y += above),
                Item::Dot(_, _, y) | Item::Circle(_, _, y) | Item::Text(_, _, _, y, _) => *y += above,
                Item::Rectangle(_, [_, top, ..], _) => *top += above,
            }
            item
        }));
    }
    all.map(png::paint)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;
    use crate::chart::{Bar, Bars};

    #[test]
    fn file_extension_is_case_insensitive_and_unknown_ones_list_formats() {
        let of = |name: &str| FileFormat::of(Path::new(name), &FileFormat::ALL);
        for format in FileFormat::ALL {
            for extension in format.extensions() {
                assert_eq!(of(&format!("a.b.{extension}")), Ok(format));
                assert_eq!(of(&format!("A.{}", extension.to_uppercase())), Ok(format));
            }
        }
        for name in ["report", "report.docx", ".md", "report."] {
            let problem = of(name).expect_err("not a known extension");
            assert!(problem.contains(name) && problem.contains(".pdf") && problem.contains(".yaml"), "{problem}");
        }
        let few = FileFormat::of(Path::new("a.pdf"), &[FileFormat::Csv]).expect_err("not offered");
        assert!(few.contains(".csv") && !few.contains(".md"), "{few}");
    }

    #[test]
    fn all_charts_are_in_one_picture() {
        let bars = |n: usize| {
            let bar = Bar {
                name: "x".to_owned(),
                parts: vec![("p".to_owned(), 1.0)],
                label: "1".to_owned(),
                interval: None,
                limit: None,
            };
            Block::Bars(Bars { title: "bars".to_owned(), bars: vec![bar; n] })
        };
        let height = |blocks: &[Block]| {
            let bytes = picture(blocks).expect("charts").expect("a picture");
            png_height(&bytes)
        };
        let (one, two) = (height(&[bars(3)]), height(&[bars(3), Block::Text("between".to_owned()), bars(3)]));
        assert!(two > 2 * one - 60 && two < 2 * one + 120, "{one} {two}");
        assert!(picture(&[Block::Text("words".to_owned())]).is_none());
    }

    fn png_height(bytes: &[u8]) -> u32 {
        let decoder = ::png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.read_info().expect("a PNG").info().height
    }
}
