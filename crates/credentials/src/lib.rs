//! Registry credentials: where they come from, which image they are for, and how they stay out of texts.
