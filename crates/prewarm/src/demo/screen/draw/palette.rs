//! Styles. Without colours, everything still differs by its sign or word.

use std::env;

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug, Default)]
pub struct Palette {
    pub plain: Style,
    pub strong: Style,
    pub heading: Style,
    pub dim: Style,
    pub done: Style,
    pub active: Style,
    pub failed: Style,
    pub waiting: Style,
}

impl Palette {
    /// With colours, unless `NO_COLOR` has a value (no-color.org).
    pub fn of_environment() -> Self {
        let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if is_plain { Self::plain() } else { Self::coloured() }
    }

    pub fn coloured() -> Self {
        let of = |colour| Style::new().fg(colour);
        Self {
            done: of(Color::Green),
            active: of(Color::Cyan),
            failed: of(Color::Red),
            waiting: of(Color::Yellow),
            ..Self::plain()
        }
    }

    pub fn plain() -> Self {
        let with = |modifier| Style::new().add_modifier(modifier);
        Self {
            strong: with(Modifier::BOLD),
            heading: with(Modifier::BOLD | Modifier::DIM),
            dim: with(Modifier::DIM),
            ..Self::default()
        }
    }
}
