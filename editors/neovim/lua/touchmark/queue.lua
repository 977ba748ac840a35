--- The queue of agents' changes that the user has not reviewed (REV-1), and
--- the signs of its changes in the files.

local buffers = require('touchmark.buffers')
local config = require('touchmark.config')
local names = require('touchmark.names')
local notice = require('touchmark.notice')
local unsaved = require('touchmark.unsaved')

local M = {}

local namespace = vim.api.nvim_create_namespace('touchmark-queue')
--- Events come in bursts: the queue is requested this long after the first, in
--- milliseconds.
local BURST = 250

--- By link, once the user has begun to review: {hunks, files, more, only,
--- commands, due}. `files` are changes that have no lines, `only` selects a part
--- of the queue, `commands` has those that made changes in it, by name.
local queues = {}
--- Changes that were put off, by name: they stay in the queue.
local later = {}
--- Called with a link whose queue has changed.
local listener = function(_) end

--- Has `listen(owner)` called when a queue has changed.
function M.listen(listen)
  listener = listen
end

--- Begins to review: nothing is put off, and only a part is requested.
---@param only table parameters of `review/list`
function M.begin(owner, only)
  later = {}
  queues[owner] = { hunks = {}, files = {}, commands = {}, only = only }
end

--- The queue of a link, or nil before the user has begun to review.
function M.of(owner)
  return queues[owner]
end

--- The links of which there is a queue.
function M.owners()
  return vim.tbl_keys(queues)
end

local function key(owner, hunk)
  return owner.root .. '\n' .. hunk.path .. '\n' .. hunk.id
end

--- A change as a request names it.
function M.named(owner, hunk)
  local path = names.path_of(owner.root, hunk)
  local member, name = names.member(owner.root, path)
  return { [member] = name, id = hunk.id }
end

--- The path of the file that has a change.
function M.path_of(owner, hunk)
  return names.path_of(owner.root, hunk)
end

--- The changes of `kind` in a link's queue that were not put off.
function M.not_later(owner, kind)
  return vim.tbl_filter(function(hunk)
    return not later[key(owner, hunk)]
  end, queues[owner] and queues[owner][kind] or {})
end

function M.open_hunks(owner)
  return M.not_later(owner, 'hunks')
end

function M.is_later(owner, hunk)
  return later[key(owner, hunk)] == true
end

--- The lines of a change in a buffer, from 1, or nil where unsaved changes
--- touch them.
function M.place(buffer, state, hunk)
  local first, last = math.max(1, hunk.lines.start), math.max(1, hunk.lines['end'])
  if vim.bo[buffer].modified then
    local total = vim.api.nvim_buf_line_count(buffer)
    first = unsaved.shown(state.edit, total, first)
    last = unsaved.shown(state.edit, total, last)
  end
  return first and last and { first, last }
end

--- Signs on the lines of changes to review.
function M.sign(owner)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local state = buffers.get(buffer)
    if state and state.link == owner and vim.api.nvim_buf_is_loaded(buffer) then
      vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
      local total = vim.api.nvim_buf_line_count(buffer)
      for _, hunk in ipairs(config.options.signs.enabled and M.open_hunks(owner) or {}) do
        local lines = M.path_of(owner, hunk) == buffers.path(state) and M.place(buffer, state, hunk)
        for line = lines and lines[1] or 1, lines and math.min(lines[2], total) or 0 do
          vim.api.nvim_buf_set_extmark(buffer, namespace, line - 1, 0, {
            sign_text = hunk.after == '' and config.options.signs.removed or config.options.signs.review,
            sign_hl_group = 'TouchmarkReview',
            priority = config.options.signs.priority + 1,
          })
        end
      end
    end
  end
end

--- Puts changes off: they stay in the queue.
function M.put_off(owner, changes)
  for _, hunk in ipairs(changes) do
    later[key(owner, hunk)] = true
  end
  M.sign(owner)
  listener(owner)
end

--- All changes of a queue.
function M.all(queue)
  return vim.list_extend(vim.list_extend({}, queue.hunks), queue.files)
end

--- Requests the queue. Calls back with its changes of lines, or with nil after
--- it has said why there are none.
function M.look(owner, callback)
  local queue = queues[owner] or { hunks = {}, files = {}, commands = {}, only = {} }
  queues[owner] = queue
  owner:request('review/list', queue.only, function(error, result)
    if error then
      notice.say(error.message)
      return callback and callback(nil)
    end
    queue.hunks, queue.files, queue.more = result.hunks, result.files or {}, result.more
    M.sign(owner)
    listener(owner)
    -- The commands are known once they are listed; until then their names are shown.
    local unknown = vim.tbl_filter(function(change)
      return change.command and not (queue.commands[change.command] or {}).endedAt
    end, M.all(queue))
    if #unknown > 0 then
      owner:request('command/list', { limit = 1000 }, function(failed, ran)
        for _, row in ipairs(not failed and ran.commands or {}) do
          queue.commands[row.command] = row
        end
        listener(owner)
      end)
    end
    if callback then
      callback(M.open_hunks(owner))
    end
  end)
end

--- A file has a new version: the queue is requested soon, if the user reviews.
function M.changed(owner)
  local queue = queues[owner]
  if queue and not queue.due then
    queue.due = true
    vim.defer_fn(function()
      queue.due = false
      if owner:is_connected() then
        M.look(owner)
      end
    end, BURST)
  end
end

--- The lines with a sign of a change to review, in order.
---@return integer[]
function M.placed(buffer)
  return vim.tbl_map(function(mark)
    return mark[2] + 1
  end, vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, {}))
end

return M
