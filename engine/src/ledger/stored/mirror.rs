//! Converts between the engine's types and the stored types, field by field.
//! One table serves both directions.
//!
//! The trait does what `From` does. `From` itself cannot be implemented for
//! `Option` and `Vec` of other types.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use minicbor::data::Type;
use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};

use crate::small_set::{Seldom, SmallSet};

/// A stored type that corresponds to an engine type.
pub(super) trait Mirror<T>: Sized {
    /// Converts the engine's value to the stored one.
    fn of(value: T) -> Self;
    /// Converts the stored value to the engine's.
    fn back(self) -> T;
}

macro_rules! the_same {
    ($($type:ty),*) => { $(
        impl Mirror<$type> for $type {
            fn of(value: $type) -> Self { value }
            fn back(self) -> $type { self }
        }
    )* };
}
the_same!(bool, i32, u32, u64, i64, String);

impl<A: Mirror<B>, B> Mirror<Option<B>> for Option<A> {
    fn of(value: Option<B>) -> Self {
        value.map(A::of)
    }
    fn back(self) -> Option<B> {
        self.map(A::back)
    }
}

impl<A: Mirror<C>, B: Mirror<D>, C, D> Mirror<(C, D)> for (A, B) {
    fn of(value: (C, D)) -> Self {
        (A::of(value.0), B::of(value.1))
    }
    fn back(self) -> (C, D) {
        (self.0.back(), self.1.back())
    }
}

/// The most items of a list that space is allocated for before they are read.
const MOST_AT_ONCE: usize = 1_024;

/// A list. Unlike minicbor's `Vec`, it allocates its final size at once when it
/// is decoded: there are some thousand short lists in a state, and a start
/// waits for them.
#[derive(Clone, Debug, PartialEq, minicbor::Encode)]
#[cbor(transparent)]
pub(super) struct List<T>(#[n(0)] pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'b, C, T: Decode<'b, C>> Decode<'b, C> for List<T> {
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Result<Self, DecodeError> {
        let length = from.array()?;
        let length = length.ok_or_else(|| DecodeError::message("a list without a length"))?;
        // A wrong length must not allocate much.
        let expected = usize::try_from(length).map_or(MOST_AT_ONCE, |all| all.min(MOST_AT_ONCE));
        let mut items = Vec::with_capacity(expected);
        for _ in 0..length {
            items.push(from.decode_with(context)?);
        }
        Ok(Self(items))
    }
}

macro_rules! a_list_of {
    ($($collection:ty $(where $bound:ident)?),*) => { $(
        impl<A: Mirror<B>, B $(: $bound)?> Mirror<$collection> for List<A> {
            fn of(value: $collection) -> Self {
                Self(value.into_iter().map(A::of).collect())
            }
            fn back(self) -> $collection {
                self.0.into_iter().map(A::back).collect()
            }
        }
    )* };
}
a_list_of!(BTreeSet<B> where Ord, SmallSet<B> where Ord, Seldom<B>, Vec<B>, VecDeque<B>);

impl<A: Mirror<B>, B> Mirror<Box<Vec<B>>> for List<A> {
    fn of(value: Box<Vec<B>>) -> Self {
        Self::of(*value)
    }
    fn back(self) -> Box<Vec<B>> {
        Box::new(self.back())
    }
}

impl<A: Mirror<C>, B: Mirror<D>, C: Ord, D> Mirror<BTreeMap<C, D>> for List<(A, B)> {
    fn of(value: BTreeMap<C, D>) -> Self {
        Self(value.into_iter().map(Mirror::of).collect())
    }
    fn back(self) -> BTreeMap<C, D> {
        self.0.into_iter().map(Mirror::back).collect()
    }
}

/// A field that is not written if it has its type's default, and that gets the
/// default if it is missing. For fields that are rarely set, and for fields
/// that were added later.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rare<T>(T);

impl<A: Mirror<B>, B> Mirror<B> for Rare<A> {
    fn of(value: B) -> Self {
        Self(A::of(value))
    }
    fn back(self) -> B {
        self.0.back()
    }
}

impl<C, T: Encode<C> + Default + PartialEq> Encode<C> for Rare<T> {
    fn encode<W: Write>(
        &self,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        self.0.encode(to, context)
    }
    fn is_nil(&self) -> bool {
        self.0 == T::default()
    }
}

impl<'b, C, T: Decode<'b, C> + Default> Decode<'b, C> for Rare<T> {
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Result<Self, DecodeError> {
        if from.datatype()? == Type::Null {
            from.null()?;
            return Ok(Self::default());
        }
        T::decode(from, context).map(Self)
    }
    fn nil() -> Option<Self> {
        Some(Self::default())
    }
}

/// Defines structs: `stored = engine's { number field: stored type, ... }`.
macro_rules! structs {
    ($( $name:ident = $engine:ty {
        $($n:tt $field:ident: $type:ty),* $(,)?
    } )*) => { $(
        #[derive(Clone, Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
        pub(in crate::ledger::stored) struct $name {
            $(#[n($n)] pub(in crate::ledger::stored) $field: $type,)*
        }

        impl Mirror<$engine> for $name {
            fn of(value: $engine) -> Self {
                type Engine = $engine;
                let Engine { $($field,)* } = value;
                Self {
                    $($field: Mirror::of($field),)*
                }
            }
            fn back(self) -> $engine {
                type Engine = $engine;
                let Self { $($field,)* } = self;
                Engine {
                    $($field: $field.back(),)*
                }
            }
        }

        impl Mirror<Box<$engine>> for $name {
            fn of(value: Box<$engine>) -> Self {
                Self::of(*value)
            }
            fn back(self) -> Box<$engine> {
                Box::new(self.back())
            }
        }
    )* };
}

/// Defines structs that store an engine's type without some of its fields.
macro_rules! heads {
    ($( $(#[$doc:meta])* $name:ident = $engine:ty {
        $($n:tt $field:ident: $type:ty),* $(,)?
    } without { $($rest:ident: $rest_type:ty),* $(,)? } )*) => { $(
        $(#[$doc])*
        #[derive(Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
        pub(in crate::ledger::stored) struct $name {
            $(#[n($n)] pub(in crate::ledger::stored) $field: $type,)*
        }

        impl From<&$engine> for $name {
            fn from(value: &$engine) -> Self {
                type Engine = $engine;
                let Engine { $($field,)* $($rest: _,)* } = value;
                Self { $($field: Mirror::of(Clone::clone($field)),)* }
            }
        }

        impl $name {
            /// Returns the engine's value, with the fields that it lacks.
            pub(in crate::ledger::stored) fn with(self, $($rest: $rest_type),*) -> $engine {
                type Engine = $engine;
                Engine { $($field: self.$field.back(),)* $($rest,)* }
            }
        }
    )* };
}

/// Defines enums whose variants have no fields: `stored = engine's { number
/// Variant }`. New variants go to the end.
macro_rules! names {
    ($( $name:ident = $engine:ty { $($n:tt $variant:ident),* $(,)? } )*) => { $(
        #[derive(Clone, Copy, Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
        #[cbor(index_only)]
        pub(in crate::ledger::stored) enum $name {
            $(#[n($n)] $variant,)*
        }

        impl Mirror<$engine> for $name {
            fn of(value: $engine) -> Self {
                type Engine = $engine;
                match value { $(Engine::$variant => Self::$variant,)* }
            }
            fn back(self) -> $engine {
                type Engine = $engine;
                match self { $(Self::$variant => Engine::$variant,)* }
            }
        }
    )* };
}

/// Defines enums whose variants have fields, as structs do, or one value:
/// `number Variant(inner: stored type)`. New variants go to the end.
macro_rules! variants {
    ($( $name:ident = $engine:ty { $(
        $number:tt $variant:ident
        $({ $($n:tt $field:ident: $type:ty),* $(,)? })?
        $(( $inner:ident: $inner_type:ty ))?
    ),* $(,)? } )*) => { $(
        #[derive(Clone, Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
        // Only one value exists at a time, so its size does not matter.
        #[allow(clippy::large_enum_variant)]
        pub(in crate::ledger::stored) enum $name { $(
            #[n($number)]
            $variant
            $({ $(#[n($n)] $field: $type,)* })?
            $({ #[n(0)] $inner: $inner_type })?,
        )* }

        impl Mirror<$engine> for $name {
            fn of(value: $engine) -> Self {
                type Engine = $engine;
                match value { $(
                    Engine::$variant
                        $({ $($field,)* })?
                        $(( $inner ))? =>
                    Self::$variant
                        $({
                            $($field: Mirror::of($field),)*
                                })?
                        $({ $inner: Mirror::of($inner) })?,
                )* }
            }
            fn back(self) -> $engine {
                type Engine = $engine;
                match self { $(
                    Self::$variant
                        $({ $($field,)* })?
                        $({ $inner })? =>
                    Engine::$variant
                        $({
                            $($field: $field.back(),)*
                                })?
                        $(( $inner.back() ))?,
                )* }
            }
        }
    )* };
}

pub(super) use {heads, names, structs, variants};
