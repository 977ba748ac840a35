// How CodeMirror looks: the page's own colours, which are variables that reach
// into its shadow root and follow the theme.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp, tags.attributeValue], color: "var(--code-string)" },
  { tag: [tags.comment, tags.meta, tags.documentMeta], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.literal], color: "var(--code-number)" },
  { tag: [tags.typeName, tags.className, tags.namespace, tags.tagName, tags.macroName], color: "var(--code-type)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.attributeName, tags.propertyName], color: "var(--code-name)" },
  { tag: tags.heading, fontWeight: "600" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strong, fontWeight: "600" },
  { tag: tags.link, textDecoration: "underline" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "transparent", fontSize: "12.5px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { padding: "4px 0" },
  ".cm-line": { padding: "0 8px" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--soft)", border: "none", paddingRight: "2px" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "34px", padding: "0 6px 0 4px", fontVariantNumeric: "tabular-nums" },
  ".cm-changeGutter": { width: "3px", paddingLeft: "0" },
  "&.cm-merge-b .cm-changedLine, .cm-insertedLine, &.cm-merge-b .cm-insertedLine, .tm-added": { backgroundColor: "var(--added)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk, .cm-deletedLine, &.cm-merge-a .cm-deletedLine, .tm-removed": { backgroundColor: "var(--removed)" },
  "&.cm-merge-b .cm-changedText, .cm-insertedLine .cm-changedText": { background: "var(--added-strong)", borderRadius: "2px" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText, .cm-deletedLine .cm-changedText": { background: "var(--removed-strong)", borderRadius: "2px" },
  "&.cm-merge-b .cm-changedLineGutter, .cm-inlineChangedLineGutter": { background: "var(--added-mark)" },
  "&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter": { background: "var(--removed-mark)" },
  ".cm-deletedChunk": { paddingLeft: "8px" },
  ".cm-deletedChunk del, .cm-insertedLine, .cm-deletedLine, .cm-deletedLine del": { textDecoration: "none" },
  ".cm-collapsedLines": { padding: "2px 8px 2px 48px", color: "var(--soft)", background: "var(--field)", fontFamily: "var(--sans)", fontSize: "12px" },
  // CodeMirror's sign here is in few fonts.
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: "none" },
  ".cm-collapsedLines:hover": { color: "var(--ink)" },
  ".cm-specialChar": { color: "var(--warn)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: "var(--selected)" },
  ".tm-authors": { width: "34px" },
  ".tm-authors .cm-gutterElement": { padding: "0 3px", display: "flex", alignItems: "center", justifyContent: "center", overflow: "hidden" },
  ".tm-author": {
    display: "block", width: "100%", height: "100%", borderLeft: "3px solid var(--who)", paddingLeft: "3px",
    color: "var(--who)", fontSize: "10.5px", fontWeight: "600", whiteSpace: "nowrap", fontFamily: "var(--sans)",
  },
  ".tm-author.user": { "--who": "var(--user)" },
  ".tm-author.unknown": { "--who": "var(--soft)", borderLeftStyle: "dashed" },
  ".tm-author.committed": { "--who": "var(--soft)" },
  ...Object.fromEntries(Array.from({ length: 8 }, (_, colour) => [`.tm-author.a${colour}`, { "--who": `var(--a${colour})` }])),
});

export const appearance = [theme, syntaxHighlighting(highlight)];
