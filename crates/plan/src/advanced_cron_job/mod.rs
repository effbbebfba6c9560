//! What is to be done for an AdvancedCronJob (kruise R90–R103).

pub mod timetable;
