//! The whole controller and agents on the embedded API, in paused time.

mod first;
