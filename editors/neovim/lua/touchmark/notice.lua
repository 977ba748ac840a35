--- Gentle notices: one line for all that happens within a moment, never one
--- that has to be confirmed.

local config = require('touchmark.config')
local names = require('touchmark.names')

local M = {}

--- Changes that come this close together, in milliseconds, are one notice.
local MOMENT = 150

local waiting = {}
--- What was said last, for tests and `:Touchmark status`.
M.last = nil

--- Shows one line immediately: the answer to a command.
---@param text string
function M.say(text)
  M.last = text
  -- A line that does not fit asks for Enter.
  vim.notify(names.show(text, math.max(20, vim.o.columns - 15)), vim.log.levels.INFO, { title = 'touchmark' })
end

local function say()
  local list = waiting
  waiting = {}
  local text
  if #list == 1 then
    local one = list[1]
    text = ('%s %s %s%s'):format(one.who, one.verb, one.path, one.then_)
  else
    local who, paths = {}, {}
    for _, one in ipairs(list) do
      if not vim.tbl_contains(who, one.who) then
        who[#who + 1] = one.who
      end
      if not vim.tbl_contains(paths, one.path) then
        paths[#paths + 1] = one.path
      end
    end
    text = ('%s changed %d open files: %s'):format(
      table.concat(who, ', '),
      #paths,
      table.concat(paths, ', ')
    )
  end
  M.last = text
  local wanted = config.options.notify
  if type(wanted) == 'function' then
    wanted(text)
  elseif wanted then
    -- A line that does not fit asks for Enter.
    vim.notify(names.show(text, math.max(20, vim.o.columns - 15)), vim.log.levels.INFO, { title = 'touchmark' })
  end
end

--- An agent changed a file that is open.
---@param who string
---@param verb string
---@param path string
---@param then_ string what became of the buffer
function M.changed(who, verb, path, then_)
  waiting[#waiting + 1] = { who = who, verb = verb, path = names.show(path), then_ = then_ }
  if #waiting == 1 then
    vim.defer_fn(say, MOMENT)
  end
end

return M
