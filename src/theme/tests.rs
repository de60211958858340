#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use ratatui::style::Color;

use super::*;

const DEPTHS: [ColorDepth; 4] = [ColorDepth::Mono, ColorDepth::Ansi16, ColorDepth::Ansi256, ColorDepth::TrueColor];

fn read(text: &str, depth: ColorDepth) -> (Option<Theme>, String) {
    let mut problems = Diagnostics::new();
    let known = [Arc::new(Theme { name: "base".to_owned(), ..Theme::plain() })];
    let theme = Theme::read(&"t.yaml".into(), &Text::Own(text.to_owned()), depth, &known, &mut problems);
    (theme, problems.to_string())
}

#[test]
fn shipped_themes_are_sound_at_every_depth() {
    for depth in DEPTHS {
        let (themes, problems) = Themes::load(None, depth);
        assert!(problems.is_empty(), "{problems}");
        let names: Vec<&str> = themes.iter().map(|theme| theme.name()).collect();
        assert_eq!(names, ["dark", "light", "high-contrast", "color-blind", "ansi-16"]);
        for theme in &themes {
            assert!(!theme.description().is_empty());
            assert_ne!(theme.style(Role::Selection), theme.style(Role::Text), "{} at {depth:?}", theme.name());
            assert_ne!(theme.style(Role::BorderFocused), theme.style(Role::Border), "{} at {depth:?}", theme.name());
            for role in Role::ALL {
                let style = theme.style(*role);
                let painted = style.bg.is_some_and(|bg| bg != Color::Reset);
                let may_paint = matches!(role, Role::Selection | Role::SelectionDim | Role::Flash);
                assert!(!painted || may_paint, "{}: {} paints its background", theme.name(), role.name());
                assert!(!painted || style.fg.is_some(), "{}: {} needs a foreground", theme.name(), role.name());
                for color in [style.fg, style.bg].into_iter().flatten() {
                    assert_eq!(depth.nearest(color), color, "{}: {}", theme.name(), role.name());
                }
            }
        }
    }
}

#[test]
fn shipped_themes_match_their_yaml_files() {
    for (document, depth) in shipped::documents("themes").flat_map(|document| DEPTHS.map(|depth| (document, depth))) {
        let mut problems = Diagnostics::new();
        let file = document.path.into();
        let read = Theme::read(&file, &Text::Shipped(document), depth, &[], &mut problems).unwrap();
        assert!(problems.is_empty(), "{problems}");
        let lazy = Theme::shipped(document, depth).unwrap();
        assert_eq!((lazy.name(), lazy.description(), lazy.order), (read.name(), read.description(), read.order));
        assert!(Role::ALL.iter().all(|role| lazy.style(*role) == read.style(*role)), "{} at {depth:?}", lazy.name());
    }
}

/// Transformation of linear light that simulates vision without red, green or blue cones (Machado, Oliveira and
/// Fernandes 2009, severity 1).
const CONES: [(&str, [[f64; 3]; 3]); 3] = [
    ("red", [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    ("green", [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    ("blue", [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
];

fn linear(color: Color) -> [f64; 3] {
    let [r, g, b] = crate::theme::color::rgb(color).unwrap_or_else(|| unreachable!("{color:?}"));
    [r, g, b].map(|channel| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    })
}

/// Converts linear light to CIELAB under daylight.
fn lab(light: [f64; 3]) -> [f64; 3] {
    let [r, g, b] = light.map(|c| c.clamp(0.0, 1.0));
    let f = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
    let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.950_47);
    let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
    let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.088_83);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

#[test]
fn better_and_worse_differ_for_every_kind_of_color_vision_in_every_theme() {
    let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
    for theme in themes.iter().filter(|theme| theme.name() != "ansi-16") {
        let [good, bad] = [Role::Good, Role::Bad].map(|role| linear(theme.style(role).fg.unwrap()));
        for (cones, matrix) in CONES {
            // A difference of 2 is visible side by side, one of 10 at a glance.
            let apart = distance(good, bad, &matrix);
            assert!(apart >= 15.0, "{} without {cones} cones: {apart:.0}", theme.name());
        }
    }
}

/// Distance of two colors in CIELAB, as seen with the cone matrix `eyes`.
fn distance(a: [f64; 3], b: [f64; 3], eyes: &[[f64; 3]; 3]) -> f64 {
    let seen = |light: [f64; 3]| lab(eyes.map(|row| row.iter().zip(light).map(|(a, b)| a * b).sum()));
    seen(a).iter().zip(seen(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

const ALL_CONES: (&str, [[f64; 3]; 3]) = ("no", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);

#[test]
fn no_two_bars_look_the_same_with_or_without_red_or_green_cones() {
    let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
    let bars = [Role::Bar1, Role::Bar2, Role::Bar3, Role::Bar4, Role::Bar5, Role::Bar6];
    // The high-contrast theme uses weight instead of color, and the 16-color theme has only the colors of the terminal.
    for theme in themes.iter().filter(|theme| !matches!(theme.name(), "high-contrast" | "ansi-16")) {
        let colors = bars.map(|role| linear(theme.style(role).fg.unwrap()));
        for (a, b) in (0..bars.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
            for (cones, matrix) in CONES.into_iter().filter(|(cones, _)| *cones != "blue").chain([ALL_CONES]) {
                let apart = distance(colors[a], colors[b], &matrix);
                let names = [bars[a], bars[b]].map(Role::name);
                assert!(apart >= 15.0, "{}: {names:?} without {cones} cones: {apart:.0}", theme.name());
            }
        }
    }
}

#[test]
fn a_highlight_does_not_look_like_a_better_value() {
    let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
    for theme in themes.iter().filter(|theme| theme.name() != "ansi-16") {
        let [accent, good] =
            [Role::Accent, Role::Good].map(|role| theme.style(role).fg.filter(|fg| *fg != Color::Reset));
        let Some((accent, good)) = accent.zip(good) else { continue };
        for (cones, matrix) in [CONES[0], CONES[1], ALL_CONES] {
            let apart = distance(linear(accent), linear(good), &matrix);
            assert!(apart >= 15.0, "{} without {cones} cones: {apart:.0}", theme.name());
        }
    }
}

/// Contrast of two colors according to WCAG 2: 1 for equal colors, 21 for black on white.
fn contrast(a: Color, b: Color) -> f64 {
    let luminance = |color| {
        let [r, g, b] = linear(color);
        0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
    };
    let (a, b): (f64, f64) = (luminance(a), luminance(b));
    a.max(b) / a.min(b)
}

#[test]
fn every_role_meets_its_minimum_contrast_on_theme_backgrounds() {
    let (dark, paper) = ([Color::Rgb(0, 0, 0), Color::Rgb(0x28, 0x2c, 0x34)], [Color::Rgb(255, 255, 255)]);
    let both = [Color::Rgb(0, 0, 0), Color::Rgb(255, 255, 255)];
    let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
    for theme in &themes {
        // A palette for all backgrounds has to be a compromise.
        let (backgrounds, least): (&[Color], f64) = match theme.name() {
            "dark" => (&dark, 4.5),
            "light" => (&paper, 4.5),
            "high-contrast" => (&both, 4.5),
            "color-blind" => (&both, 4.5),
            _ => continue,
        };
        for role in Role::ALL {
            let style = theme.style(*role);
            // Lines and bars need less contrast than text.
            let drawn = *role == Role::Border || role.name().starts_with("bar-");
            let least = if drawn { 3.0 } else { least };
            let Some(fg) = style.fg.filter(|fg| matches!(fg, Color::Rgb(..) | Color::Indexed(16..))) else { continue };
            let painted = style.bg.filter(|bg| *bg != Color::Reset);
            for background in painted.as_ref().map_or(backgrounds, std::slice::from_ref) {
                let contrast = contrast(fg, *background);
                assert!(contrast >= least, "{}: {} on {background:?}: {contrast:.1}", theme.name(), role.name());
            }
        }
    }
}

#[test]
fn mono_themes_use_no_colors_and_reverse_the_selection() {
    let (themes, _) = Themes::load(None, ColorDepth::Mono);
    for theme in &themes {
        for role in Role::ALL {
            let style = theme.style(*role);
            assert_eq!((style.fg, style.bg), (None, None), "{}", role.name());
        }
        assert!(theme.style(Role::Selection).add_modifier.contains(Modifier::REVERSED));
    }
}

#[test]
fn minimal_theme_inherits_unset_roles_and_maps_colors_by_depth() {
    let text =
        "name: mine\npalette:\n  sky: ['#86b3e6', 110, cyan]\nroles:\n  accent: sky\n  good: { fg: 34, bold: true }\n";
    let (theme, problems) = read(text, ColorDepth::TrueColor);
    assert_eq!(problems, "");
    let theme = theme.unwrap();
    let sky = Style::new().fg(Color::Rgb(0x86, 0xb3, 0xe6));
    assert_eq!(theme.style(Role::Accent), sky);
    assert_eq!(theme.style(Role::BorderFocused), sky, "a child takes after its parent");
    assert_eq!(theme.style(Role::Best), Style::new().fg(Color::Indexed(34)).add_modifier(Modifier::BOLD));
    assert_eq!(theme.style(Role::Selection), Theme::plain().style(Role::Selection), "a selection always shows");
    let (theme, _) = read(text, ColorDepth::Ansi256);
    assert_eq!(theme.unwrap().style(Role::Accent).fg, Some(Color::Indexed(110)));
    let (theme, _) = read(text, ColorDepth::Ansi16);
    let theme = theme.unwrap();
    assert_eq!(theme.style(Role::Accent).fg, Some(Color::Cyan));
    assert_eq!(theme.style(Role::Good).fg, Some(Color::Green));
}

#[test]
fn ansi16_override_replaces_a_role_style_at_16_colors() {
    let text = "name: mine\nroles:\n  selection: { fg: '#ffffff', bg: '#204060', ansi16: { reverse: true } }\n";
    let (theme, problems) = read(text, ColorDepth::Ansi16);
    assert_eq!(problems, "");
    assert_eq!(theme.unwrap().style(Role::Selection), Style::new().add_modifier(Modifier::REVERSED));
    let (theme, _) = read(text, ColorDepth::TrueColor);
    assert_eq!(theme.unwrap().style(Role::Selection).bg, Some(Color::Rgb(0x20, 0x40, 0x60)));
}

#[test]
fn a_theme_may_extend_another() {
    let (theme, problems) = read("name: mine\nextends: base\nroles:\n  good: green\n", ColorDepth::Ansi16);
    assert_eq!(problems, "");
    let theme = theme.unwrap();
    assert_eq!(theme.style(Role::Key), Theme::plain().style(Role::Key));
    assert_eq!(theme.style(Role::Good).fg, Some(Color::Green));
}

#[test]
fn invalid_theme_reports_all_diagnostics_at_once() {
    let text = "extends: bse\npalete: {}\npalette:\n  red: blue\n  many: [1, 2, 3, 4]\nroles:\n  accent: skyy\n  \
                borderfocused: 12\n  good: { fg: 300, bold: perhaps, color: red }\n  bad: [1]\n";
    let (theme, problems) = read(text, ColorDepth::TrueColor);
    assert!(theme.is_none());
    for expected in [
        "t.yaml:1:10: error: extends: unknown theme `bse`; did you mean `base`?",
        "t.yaml:2:1: warning: palete: unknown key; kept but ignored; did you mean `palette`?",
        "t.yaml:4:3: error: palette.red: `red` is already the name of a color; choose another name",
        "t.yaml:5:9: error: palette.many: found a list of 4, expected one to three colors",
        "t.yaml:7:11: error: roles.accent: found text \"skyy\", expected a color",
        "t.yaml:8:3: warning: roles.borderfocused: unknown role; did you mean `border-focused`?",
        "t.yaml:9:15: error: roles.good.fg: found 300, expected a color",
        "error: roles.good.bold: found text \"perhaps\", expected true or false",
        "warning: roles.good.color: unknown key",
        "t.yaml:10:8: error: roles.bad: found a list of 1, expected a color",
        "1 missing field: name",
    ] {
        assert!(problems.contains(expected), "{expected}\nis not in\n{problems}");
    }
    for wrong in ["", "- 1", "roles: 3\nname: x", "name: [", "name: x\nroles: {accent: {fg: {}}}"] {
        assert!(read(wrong, ColorDepth::TrueColor).0.is_none(), "{wrong}");
    }
}

#[test]
fn user_themes_replace_shipped_ones_and_broken_ones_do_not() {
    let config = tempfile::tempdir().unwrap();
    std::fs::create_dir(config.path().join("themes")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(config.path().join("themes").join(name), text).unwrap();
    write("1.yaml", "name: dark\nextends: light\nroles:\n  accent: red\n");
    write("2.yaml", "name: light\nroles:\n  accent: rde\n");
    write("3.yml", "name: mine\nextends: dark\n");
    write(".4.yaml", "not: a theme\n");
    let (themes, problems) = Themes::load(Some(config.path()), ColorDepth::TrueColor);
    let find = |name: &str| themes.iter().find(|theme| theme.name() == name).unwrap();
    assert_eq!(find("dark").style(Role::Accent).fg, Some(Color::Red));
    assert_eq!(find("mine").style(Role::Accent).fg, Some(Color::Red));
    assert_eq!(find("dark").style(Role::Good), find("light").style(Role::Good));
    assert_ne!(find("light").style(Role::Good), Style::new());
    assert_eq!(problems.errors(), 1);
    assert!(problems.to_string().contains("2.yaml:3:11: error: roles.accent"), "{problems}");
    assert_eq!(Themes::watched(Some(config.path())), [config.path().join("themes")]);
}

#[test]
fn theme_is_chosen_from_the_terminal_background_variable() {
    let suited = |value: Option<&str>| Theme::suited(|_| value.map(str::to_owned));
    assert_eq!(suited(None), "dark");
    assert_eq!(suited(Some("15;0")), "dark");
    assert_eq!(suited(Some("0;15")), "light");
    assert_eq!(suited(Some("0;default;7")), "light");
    assert_eq!(suited(Some("x;y")), "dark");
}

#[test]
fn parents_come_before_their_children() {
    for role in Role::ALL {
        assert!(role.parent().is_none_or(|parent| (parent as usize) < *role as usize), "{}", role.name());
        assert_eq!(Role::from_name(&role.name().replace('-', "_")), Some(*role));
    }
}
