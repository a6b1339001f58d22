//! Address lookup tables: what a transaction needs to know of one, and where one stands.

use std::{fmt, str::FromStr};

use serde::Serialize;
use solana_address::Address;

use super::{BundleKey, UnknownStatus};

/// An address lookup table: a v0 transaction that names it can name the addresses in it by one byte each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupTable {
    /// The table's own address.
    pub address: Address,
    /// The addresses in it that a transaction can use, in order.
    pub addresses: Vec<Address>,
}

/// For whom addresses are kept in tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableHolder {
    /// A bundle, until it has ended. The store must know it.
    Bundle(BundleKey),
    /// Somebody ahead of time, under a name of their choice, until they release it.
    Named(String),
}

impl fmt::Display for TableHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle(key) => write!(f, "bundle {key}"),
            Self::Named(name) => write!(f, "`{name}`"),
        }
    }
}

macro_rules! texts {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// The name that the store and the JSON output use.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownStatus;

            fn from_str(text: &str) -> Result<Self, UnknownStatus> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(UnknownStatus(text.to_owned())),
                }
            }
        }
    };
}

texts! {
    /// Where a lookup table came from.
    TableOrigin {
        /// It was made from this store.
        Created = "created",
        /// It was found on chain: who made it may still need it.
        Discovered = "discovered",
    }
}

texts! {
    /// Where a lookup table stands.
    TableStatus {
        /// Recorded, and not seen on chain yet.
        Creating = "creating",
        /// On chain; it can be used and extended.
        Active = "active",
        /// On chain; it can be used, and nothing else will ever happen to it.
        Frozen = "frozen",
        /// On chain, and on its way out: it can't be extended.
        Deactivating = "deactivating",
        /// Not on chain, and never again.
        Closed = "closed",
    }
}

texts! {
    /// What a transaction does to a lookup table.
    TableStep {
        /// Makes it, with its first addresses.
        Create = "create",
        /// Adds addresses.
        Extend = "extend",
        /// Takes it out of use.
        Deactivate = "deactivate",
        /// Closes it; its rent comes back.
        Close = "close",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_pinned_and_read_back() {
        for text in ["creating", "active", "frozen", "deactivating", "closed"] {
            assert_eq!(text.parse::<TableStatus>().map(TableStatus::as_str), Ok(text));
        }
        for text in ["create", "extend", "deactivate", "close"] {
            assert_eq!(text.parse::<TableStep>().map(TableStep::as_str), Ok(text));
        }
        for text in ["created", "discovered"] {
            assert_eq!(text.parse::<TableOrigin>().map(TableOrigin::as_str), Ok(text));
        }
        assert_eq!("Active".parse::<TableStatus>(), Err(UnknownStatus("Active".into())));
    }
}
