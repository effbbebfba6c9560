//! How commands show what they found: one report, as a table for people or as a document for programs.

mod live;
mod table;
mod words;

use std::io::IsTerminal as _;

use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;

use crate::answer::{Answer, Exit};

pub use live::follow;
pub use table::{Cell, Column, Tone, table};
pub use words::{ago, bytes, counted, duration, names, speed};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table
    Table,
    /// A table with more columns
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// Names only, one a line
    Name,
}

#[derive(Clone, Copy, Debug, ClapArgs)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output: Format,
}

#[derive(Clone, Copy, Debug, ClapArgs)]
#[command(next_help_heading = "Output")]
pub struct Watch {
    /// Show it again whenever it changes, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
}

/// What a command shows.
pub trait Report: Serialize {
    fn text(&self, look: Look) -> String;
    /// The names of what it is about.
    fn names(&self) -> Vec<String>;

    /// What standard error says beside the report, if it is shown once.
    fn remark(&self) -> String {
        String::new()
    }

    /// How the command ends, if the report is shown once.
    fn exit(&self) -> Exit {
        Exit::Success
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Show all columns.
    pub is_wide: bool,
    /// Use colours.
    pub is_coloured: bool,
}

impl Look {
    /// For standard output: colours only on a terminal, and not if `NO_COLOR` is set.
    pub fn of(format: Format) -> Self {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let is_coloured = std::io::stdout().is_terminal() && !is_unwanted && !is_dumb;
        Self { is_wide: format == Format::Wide, is_coloured }
    }
}

/// The answer of a command that shows a report once.
pub fn once(report: &impl Report, format: Format) -> Answer {
    Answer { stdout: render(report, format, Look::of(format)), stderr: report.remark(), exit: report.exit() }
}

/// A report in the format that was asked for.
pub fn render(report: &impl Report, format: Format, look: Look) -> String {
    match format {
        Format::Table | Format::Wide => report.text(look),
        Format::Json => json(report),
        Format::Yaml => yaml(report),
        Format::Name => report.names().into_iter().map(|name| name + "\n").collect(),
    }
}

pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("a report holds only text and numbers") + "\n"
}

pub fn yaml(value: &impl Serialize) -> String {
    serde_saphyr::to_string(value).expect("a report holds only text and numbers")
}
