//! `New!`: constructors for the values that clients send.
//!
//! Those types are `#[non_exhaustive]` in other crates, so that a new optional
//! field breaks no client. `#[apply(request!)]` applies `New!` to such a type,
//! which gives it
//!
//! - `new`, whose arguments are the required fields, in their order, and
//!   `Default` if there are none;
//! - for each optional field a method of the same name that sets it. A field
//!   is optional if it is an `Option` or has `#[serde(default)]`, as in the
//!   schema.
//!
//! Texts and paths are taken as `impl Into`.

/// Implements `new` and a setter for each optional field.
macro_rules! New {
    ($(#[$_attribute:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::new::fields! { $name [] [] $($fields)* }
    };
}

/// Sorts the fields of a struct into required and optional ones. After `as`:
/// the type of the argument. After `=>`: what makes the field's value of it.
macro_rules! fields {
    // Optional, and absent in most requests.
    ($name:ident [$($required:tt)*] [$($optional:tt)*]
        $(#[doc = $doc:expr])* $(#[serde(default)])? pub $field:ident: Option<String>, $($rest:tt)*
    ) => {
        $crate::new::fields! { $name [$($required)*]
            [$($optional)* { $(#[doc = $doc])* $field as impl Into<String> => $crate::new::some_into }]
            $($rest)* }
    };
    ($name:ident [$($required:tt)*] [$($optional:tt)*]
        $(#[doc = $doc:expr])* $(#[serde(default)])? pub $field:ident: Option<ClientPath>, $($rest:tt)*
    ) => {
        $crate::new::fields! { $name [$($required)*]
            [$($optional)* { $(#[doc = $doc])* $field as impl Into<ClientPath> => $crate::new::some_into }]
            $($rest)* }
    };
    ($name:ident [$($required:tt)*] [$($optional:tt)*]
        $(#[doc = $doc:expr])* $(#[serde(default)])? pub $field:ident: Option<$type:ty>, $($rest:tt)*
    ) => {
        $crate::new::fields! { $name [$($required)*]
            [$($optional)* { $(#[doc = $doc])* $field as $type => Some }]
            $($rest)* }
    };
    // Optional, with a default.
    ($name:ident [$($required:tt)*] [$($optional:tt)*]
        $(#[doc = $doc:expr])* #[serde(default)] pub $field:ident: $type:ty, $($rest:tt)*
    ) => {
        $crate::new::fields! { $name [$($required)*]
            [$($optional)* { $(#[doc = $doc])* $field as $type => std::convert::identity }]
            $($rest)* }
    };
    // Required.
    ($name:ident [$($required:tt)*] [$($optional:tt)*]
        $(#[doc = $doc:expr])* $(#[serde(rename = $_name:literal)])? pub $field:ident: String, $($rest:tt)*
    ) => {
        $crate::new::fields! { $name
            [$($required)* { $field as impl Into<String> => Into::into }] [$($optional)*] $($rest)* }
    };
    ($name:ident [$($required:tt)*] [$($optional:tt)*]
        $(#[doc = $doc:expr])* $(#[serde(rename = $_name:literal)])? pub $field:ident: ClientPath, $($rest:tt)*
    ) => {
        $crate::new::fields! { $name
            [$($required)* { $field as impl Into<ClientPath> => Into::into }] [$($optional)*] $($rest)* }
    };
    ($name:ident [$($required:tt)*] [$($optional:tt)*]
        $(#[doc = $doc:expr])* $(#[serde(rename = $_name:literal)])? pub $field:ident: $type:ty, $($rest:tt)*
    ) => {
        $crate::new::fields! { $name
            [$($required)* { $field as $type => std::convert::identity }] [$($optional)*] $($rest)* }
    };
    // All are sorted.
    ($name:ident [] [$($optional:tt)*]) => {
        impl Default for $name {
            #[inline]
            fn default() -> Self {
                Self::new()
            }
        }
        $crate::new::functions! { $name [] [$($optional)*] }
    };
    ($name:ident [$($required:tt)*] [$($optional:tt)*]) => {
        $crate::new::functions! { $name [$($required)*] [$($optional)*] }
    };
}

/// Implements the functions for sorted fields.
macro_rules! functions {
    ($name:ident
        [$({ $required:ident as $argument:ty => $make:expr })*]
        [$({ $(#[doc = $doc:expr])* $optional:ident as $value:ty => $set:expr })*]
    ) => {
        impl $name {
            /// Returns a value with these required fields, and the default of
            /// each optional field.
            #[inline]
            #[allow(clippy::too_many_arguments)]
            pub fn new($($required: $argument),*) -> Self {
                Self {
                    $($required: ($make)($required),)*
                    $($optional: Default::default(),)*
                }
            }

            $(
                #[doc = concat!("Sets `", stringify!($optional), "`.")]
                #[doc = ""]
                $(#[doc = $doc])*
                #[inline]
                #[must_use]
                pub fn $optional(mut self, $optional: $value) -> Self {
                    self.$optional = ($set)($optional);
                    self
                }
            )*
        }

        #[cfg(feature = "schema")]
        impl $crate::new::HasNew for $name {
            const ARGUMENTS: &'static [&'static str] = &[$(stringify!($required),)*];
        }
    };
}

pub(crate) use {fields, functions};

/// Returns the value of an optional field from what a setter takes.
pub(crate) fn some_into<T>(value: impl Into<T>) -> Option<T> {
    Some(value.into())
}

/// The arguments of `new`, which a test compares with the schema.
#[cfg(feature = "schema")]
#[diagnostic::on_unimplemented(
    message = "clients of other crates cannot build the request `{Self}`",
    note = "it needs `#[apply(request!)]` (proto/src/attributes.rs)"
)]
pub(crate) trait HasNew {
    /// The names of the required fields, in their order.
    const ARGUMENTS: &'static [&'static str];
}
