//! Where a program's log goes, and how it looks.

use std::str::FromStr;

/// How an error is logged: with its causes.
pub use prewarm_api::text::chain;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The client library logs at every attempt why a watch is refused. Our watches log it themselves, once. A level that
/// names the library overrides this.
const QUIET: &str = "kube_runtime=error";

/// How a log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    #[default]
    Human,
    /// One JSON object a line, for programs.
    Json,
}

/// What is wrong with the settings of a log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `human` nor `json`.
    #[error("there is no log format {0:?}; choose human or json")]
    Format(String),
    /// Not a filter that tracing can read.
    #[error(
        "cannot read the log level {text:?}; write a level such as info, or one per part such as info,kube=debug"
    )]
    Level { text: String, source: tracing_subscriber::filter::ParseError },
    /// The process has a log already.
    #[error("the log was started twice")]
    Started(#[source] tracing::subscriber::SetGlobalDefaultError),
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            other => Err(Error::Format(other.to_owned())),
        }
    }
}

/// Starts the process's log, on standard error. `level` is a level or a list of them, as `RUST_LOG` has it.
pub fn start(format: Format, level: &str) -> Result<(), Error> {
    use std::io::IsTerminal as _;
    let has_colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscriber = subscriber(format, level, has_colours, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(Error::Started)
}

fn subscriber(
    format: Format,
    level: &str,
    has_colours: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Result<Box<dyn Subscriber + Send + Sync>, Error> {
    let filter = EnvFilter::builder()
        .parse(format!("{QUIET},{level}"))
        .map_err(|source| Error::Level { text: level.chars().take(256).collect(), source })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    Ok(match format {
        Format::Human => Box::new(builder.with_ansi(has_colours).finish()),
        // Fields stand beside the message and not in an object of their own, so that they are easy to search for.
        Format::Json => Box::new(builder.json().flatten_event(true).with_span_list(false).finish()),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing::{debug, info, info_span};

    use super::*;

    #[derive(Clone, Default)]
    struct Sheet(Arc<Mutex<Vec<u8>>>);

    impl Write for Sheet {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: Format, level: &str) -> String {
        let sheet = Sheet::default();
        let writer = sheet.clone();
        let subscriber = subscriber(format, level, false, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            let _span = info_span!("pull", attempt = 2).entered();
            info!(image = "web:v1", "pulled");
            debug!("details");
        });
        String::from_utf8(sheet.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn the_human_format_is_one_line() {
        let text = written(Format::Human, "info");
        assert_eq!(text.lines().count(), 1);
        assert!(
            text.ends_with("  INFO pull{attempt=2}: prewarm_process::log::tests: pulled image=\"web:v1\"\n"),
            "{text}"
        );
    }

    #[test]
    fn the_json_format_is_one_object() {
        let mut object: serde_json::Value = serde_json::from_str(&written(Format::Json, "info")).unwrap();
        assert!(object["timestamp"].take().is_string());
        let wanted = serde_json::json!({
            "timestamp": null, "level": "INFO", "target": "prewarm_process::log::tests", "message": "pulled",
            "image": "web:v1", "span": { "name": "pull", "attempt": 2 },
        });
        assert_eq!(object, wanted);
    }

    #[test]
    fn a_level_applies_to_everything_or_to_one_part() {
        assert_eq!(written(Format::Human, "warn"), "");
        assert_eq!(written(Format::Human, "debug").lines().count(), 2);
        assert_eq!(written(Format::Human, "error,prewarm_process::log=debug").lines().count(), 2);
    }

    #[test]
    fn an_error_is_logged_with_each_of_its_causes_once() {
        let Err(error) = subscriber(Format::Human, "prewarm=loud", false, io::sink) else { panic!("read") };
        let wanted = "such as info,kube=debug: error parsing level filter: expected one of \"off\", \"error\", \
                      \"warn\", \"info\", \"debug\", \"trace\", or a number 0-5";
        let text = chain(&error);
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn an_error_says_what_can_be_written_instead() {
        let error = "xml".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "there is no log format \"xml\"; choose human or json");
        let Err(error) = subscriber(Format::Human, "prewarm=loud", false, io::sink) else { panic!("read") };
        assert_eq!(
            error.to_string(),
            "cannot read the log level \"prewarm=loud\"; \
             write a level such as info, or one per part such as info,kube=debug"
        );
    }
}
