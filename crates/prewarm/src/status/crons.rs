//! One row for each cron job, and the remarks below them.

use crate::crons::{Note, Summary};
use crate::show::{Cell, Column, Look, names, table};

/// The most names of runs that are shown; JSON and YAML have all.
const MOST_NAMES: usize = 3;

const COLUMNS: [Column; 10] = [
    Column::new("NAME"),
    Column::new("STATE"),
    Column::new("SCHEDULE"),
    Column::new("ZONE"),
    Column::new("LAST RUN"),
    Column::new("NEXT RUN"),
    Column::new("ACTIVE"),
    Column::new("SKIPPED"),
    Column::new("AGE"),
    Column::wide("MAKES"),
];

pub fn text(crons: &[Summary], has_namespaces: bool, look: Look) -> String {
    let mut columns = COLUMNS.to_vec();
    if has_namespaces {
        columns.insert(0, Column::new("NAMESPACE"));
    }
    let namespace = |cron: &Summary| has_namespaces.then(|| Cell::from(cron.namespace.clone()));
    let rows = crons.iter().map(|cron| namespace(cron).into_iter().chain(cells(cron)).collect());
    table(&columns, rows, look)
}

fn cells(cron: &Summary) -> Vec<Cell> {
    vec![
        cron.title().into(),
        Cell::toned(format!("{:?}", cron.state), cron.state.tone()),
        cron.schedule.clone().into(),
        cron.zone.clone().into(),
        cron.since_last().unwrap_or_else(|| "never".to_owned()).into(),
        cron.until_next().unwrap_or_else(|| "-".to_owned()).into(),
        cron.active.len().to_string().into(),
        cron.skipped_count().to_string().into(),
        cron.age().into(),
        cron.makes.unwrap_or("-").into(),
    ]
}

/// The lines below the table; for a cron job that was named, also its running and skipped runs.
pub fn remarks(cron: &Summary, is_detailed: bool) -> String {
    let mut remarks: Vec<String> = cron.notes.iter().map(Note::to_string).collect();
    if is_detailed {
        if !cron.active.is_empty() {
            remarks.push(format!("going on: {}", names(&cron.active, MOST_NAMES)));
        }
        remarks.extend(cron.skips());
    }
    let title = cron.title();
    remarks.iter().flat_map(|remark| ["\n", &*title, ": ", remark, "\n"]).collect()
}
