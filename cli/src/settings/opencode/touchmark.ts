// touchmark's plug-in for opencode.

export const TouchmarkPlugin = async () => ({});
