--- The options of `setup{}`, and their defaults.

local M = {}

M.defaults = {
  -- Whether to start a daemon where none runs: 'never', 'when git', 'always'.
  start = 'never',
  -- The command, for `start`. nil: $TOUCHMARK_BIN, else `touchmark` on the PATH.
  command = nil,
  -- Whether to say that an agent changed a file that is open; or a function
  -- that gets the text.
  notify = true,
  -- Whether to load a file again when it was changed on disk, as far as
  -- 'autoread' says so and the buffer has no changes of its own.
  reload = true,
  signs = {
    enabled = true,
    changed = '▎',
    removed = '▁',
    -- On changes to review, once the user has begun to.
    review = '┃',
    priority = 5,
  },
  -- How `:Touchmark review` is grouped: 'file', 'directory', 'command' or
  -- 'session'.
  group = 'file',
  -- Whether to show who wrote the cursor's line, after its end.
  blame = false,
  -- Lines kept of the feed.
  feed = 1000,
  -- Buffers larger than this many bytes get no signs.
  largest = 1024 * 1024,
}

M.options = vim.deepcopy(M.defaults)

local KINDS = {
  start = { 'string' },
  command = { 'string' },
  notify = { 'boolean', 'function' },
  reload = { 'boolean' },
  signs = { 'table', 'boolean' },
  group = { 'string' },
  blame = { 'boolean' },
  feed = { 'number' },
  largest = { 'number' },
}
local STARTS = { never = true, always = true, ['when git'] = true }
local GROUPS = { file = true, directory = true, command = true, session = true }

--- Takes options in. Returns what is wrong with them; the rest is in force.
---@param given table?
---@return string[]
function M.apply(given)
  local wrong, taken = {}, {}
  for name, value in pairs(given or {}) do
    local kinds = KINDS[name]
    if not kinds then
      wrong[#wrong + 1] = ('there is no option %q'):format(tostring(name))
    elseif not vim.tbl_contains(kinds, type(value)) then
      wrong[#wrong + 1] = ('%s must be a %s'):format(name, table.concat(kinds, ' or a '))
    elseif name == 'start' and not STARTS[value] then
      wrong[#wrong + 1] = "start must be 'never', 'when git' or 'always'"
    elseif name == 'group' and not GROUPS[value] then
      wrong[#wrong + 1] = "group must be 'file', 'directory', 'command' or 'session'"
    else
      taken[name] = value
    end
  end
  if type(taken.signs) == 'boolean' then
    taken.signs = { enabled = taken.signs }
  end
  M.options = vim.tbl_deep_extend('force', vim.deepcopy(M.defaults), taken)
  return wrong
end

return M
