// Finds a touchmark daemon, starts it and talks to it. touchmark tracks which
// of an agent's file copies are out of date, and who changed each file.

export { Client, type ConnectOptions, connect } from "./client.js";
export { type Committed, Edit, type EditDone, type EditOptions } from "./edit.js";
export { type ErrorFields, TouchmarkError } from "./errors.js";
export { Feed, type FeedOptions, type Next } from "./feed.js";
export type * from "./generated/protocol.js";
export { COMMON_ERRORS, ERRORS, PROTOCOL } from "./generated/protocol.js";
export type { Ask, Method } from "./generated/requests.js";
export { hashOf } from "./hash.js";
export type { LinkOptions } from "./link.js";
export { type Named, type Path, listed, nameIn, named } from "./names.js";
export type { Environment } from "./places.js";
export { type Read, type ReadTextOptions, Session, type SessionOptions, type Written } from "./session.js";
export { Answer, type Rules, type Tool, Tools, type Wrapped, restsOn } from "./tools.js";
export { Workspace } from "./workspace.js";
