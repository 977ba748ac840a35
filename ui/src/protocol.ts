// The types of the protocol: generated for the TypeScript client, and used
// here without its code.

export type * from "../../bindings/typescript/src/generated/protocol.js";
