//! Enums whose cases are fixed words of metrics and logs.

/// Declares an enum of plain cases, each with its word: `Node = "node"`.
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$case_about:meta])* $case:ident = $word:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$case_about])* $case,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$case),*];

            /// A short fixed word for metrics and logs.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$case => $word,)*
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    words! {
        /// How far it is.
        pub enum Stage {
            /// Not begun.
            Waiting = "waiting",
            /// Over.
            Done = "done",
        }
    }

    #[test]
    fn every_case_has_its_word_in_the_order_of_the_enum() {
        assert_eq!(Stage::ALL, [Stage::Waiting, Stage::Done]);
        assert_eq!(Stage::ALL.map(Stage::as_str), ["waiting", "done"]);
    }
}
