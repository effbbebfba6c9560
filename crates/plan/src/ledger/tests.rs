//! Turns of the ledger.
