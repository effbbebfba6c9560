//! The node agent: pulls what its NodeImage asks and reports.
