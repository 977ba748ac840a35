//! The attributes of the types on the wire.
//!
//! All of them can be sent in JSON, where names are in camel case, and as
//! frames. They have a JSON schema with the feature `schema`, and leave room
//! for more fields or variants without the feature `exhaustive`. What one type
//! has in addition is at that type.

macro_rules_attribute::attribute_alias! {
    // A request, or a struct within one. Unknown fields are refused, so that a
    // misspelt name is not ignored.
    #[apply(request!)] =
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
        #[macro_rules_attribute::macro_rules_derive(New!)];

    // An answer, an event, or a value within one. Unknown fields are ignored:
    // a newer daemon may send them.
    #[apply(answer!)] =
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)];

    // An enum whose variants have no fields, in requests and answers.
    #[apply(choice!)] =
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)];
}
