--- `:Touchmark SUBCOMMAND`.

local buffers = require('touchmark.buffers')
local feed = require('touchmark.feed')
local files = require('touchmark.files')
local link = require('touchmark.link')
local names = require('touchmark.names')
local notice = require('touchmark.notice')
local view = require('touchmark.view')
local workspace = require('touchmark.workspace')

local M = {}

local NOBODY = { 'No daemon runs for this workspace.', '', 'Agents start it; so does `touchmark start`. See :help touchmark-start.' }

--- The link of the current buffer's workspace, or of the working directory's.
local function here(callback)
  local state = buffers.get(0)
  if state and state.link then
    return callback(state.link)
  end
  link.first(workspace.candidates(vim.fn.getcwd()), callback)
end

--- Asks for lines and shows them, or why there are none.
local function shown(method, params, render)
  return function(show)
    here(function(owner)
      if not owner or not owner:is_connected() then
        return show(NOBODY)
      end
      owner:request(method, params, function(error, result)
        show(error and { names.show(error.message, 200) } or render(result, owner))
      end)
    end)
  end
end

local ago = names.ago

local subcommands = {}

--- Runs a function of `review`.
local function reviews(name, ...)
  local fixed = { ... }
  return function(argument)
    require('touchmark.review')[name](fixed[1] or argument)
  end
end

subcommands.review = reviews('open')
subcommands.keep = reviews('keep')
subcommands.undo = reviews('undo')
subcommands.redo = reviews('redo')
subcommands.later = reviews('later')
subcommands.next = reviews('go', 1)
subcommands.previous = reviews('go', -1)

function subcommands.group(argument)
  require('touchmark.list').group(argument)
end

function subcommands.blame()
  require('touchmark.blame').toggle()
end

function subcommands.feed()
  local function fill(show)
    local lines = feed.lines()
    show(#lines > 0 and lines or { 'Nothing has happened since this editor began to listen.' })
  end
  local buffer
  buffer = view.open('feed', fill)
  feed.listen('view', function()
    if not vim.api.nvim_buf_is_valid(buffer) then
      return feed.listen('view', nil)
    end
    view.show(buffer, feed.lines())
  end)
end

function subcommands.history(argument)
  local named = argument and vim.fn.fnamemodify(vim.fn.expand(argument), ':p')
  local state = buffers.get(0)
  local function ask(owner, path, show)
    if not owner or not owner:is_connected() or not path then
      return show(path and NOBODY or { 'This file is in no workspace that touchmark knows.' })
    end
    local member, name = names.member(owner.root, path)
    owner:request('file/history', { [member] = name }, function(error, history)
      if error then
        return show({ names.show(error.message, 200) })
      end
      local lines = { names.show(path, 200), '' }
      for at, version in ipairs(history.versions) do
        lines[#lines + 1] = feed.history_line(version, files.is_baseline(history, at))
      end
      if #history.versions == 0 then
        lines[#lines + 1] = 'No agent has read it yet, so nothing is kept of it.'
      end
      show(lines)
    end)
  end
  view.open('history', function(show)
    if not named then
      return ask(state and state.link, state and buffers.path(state), show)
    end
    local directory = workspace.directory_of(named)
    link.first(directory and workspace.candidates(directory) or {}, function(owner)
      ask(owner, owner and workspace.relative(owner.root, named), show)
    end)
  end)
end

function subcommands.sessions()
  view.open('sessions', shown('session/list', {}, function(result)
    local lines = { ('%-24s  %-8s  %6s  %6s  %6s  %s'):format('session', 'state', 'reads', 'edits', 'stale', 'last active') }
    for _, row in ipairs(result.sessions) do
      lines[#lines + 1] = ('%-24s  %-8s  %6d  %6d  %6d  %s'):format(
        names.show(names.session(row), 24),
        row.open and 'open' or 'closed',
        row.reads,
        row.edits,
        row.stale,
        ago(row.lastActive)
      )
    end
    if #lines == 1 then
      lines[2] = 'No agent has asked anything yet.'
    end
    return lines
  end))
end

function subcommands.status()
  local state = buffers.get(0)
  view.open('status', shown('status', {}, function(status, owner)
    local lines = {
      ('workspace   %s'):format(names.show(status.workspace, 200)),
      ('daemon      %s, process %d, up %d min'):format(status.version, status.pid, math.floor(status.uptimeMs / 60000)),
      ('socket      %s'):format(owner.socket),
      ('tracked     %d files, %d sessions'):format(status.trackedFiles, status.sessions),
    }
    for _, place in ipairs(status.degraded) do
      lines[#lines + 1] = ('degraded    %s %s'):format(names.show(place.path or 'everything'), names.show(place.cause, 200))
    end
    local path = state and state.link == owner and buffers.path(state)
    local file = path and files.known(owner, path)
    if file then
      local latest = file.version
      local who = latest and ('%s, %s'):format(names.author(latest.author), ago(latest.time)) or 'no one since it is tracked'
      lines[#lines + 1] = ''
      lines[#lines + 1] = ('%s'):format(names.show(path, 200))
      lines[#lines + 1] = ('  changed by  %s'):format(who)
      local stale = vim.tbl_map(function(session)
        return names.show(session, 24)
      end, vim.tbl_keys(file.stale))
      table.sort(stale)
      lines[#lines + 1] = ('  stale for   %s'):format(#stale > 0 and table.concat(stale, ', ') or 'no session')
    end
    if notice.last then
      lines[#lines + 1] = ''
      lines[#lines + 1] = 'last notice: ' .. names.show(notice.last, 300)
    end
    return lines
  end))
end

--- The subcommands that begin like that.
function M.complete(lead, line)
  if line:match('^%s*%S*Touchmark!?%s+history%s+') then
    return vim.fn.getcompletion(lead, 'file')
  end
  local grouping = line:match('^%s*%S*Touchmark!?%s+group%s+') and require('touchmark.groups').BY
  if grouping then
    return vim.tbl_filter(function(name)
      return vim.startswith(name, lead)
    end, grouping)
  end
  if line:match('^%s*%S*Touchmark!?%s+%S+%s') then
    return {}
  end
  local found = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(subcommands))
  table.sort(found)
  return found
end

--- Runs one.
---@param arguments string[]
function M.run(arguments)
  local name = arguments[1] or 'status'
  local subcommand = subcommands[name]
  if not subcommand then
    local known = table.concat(M.complete('', 'Touchmark '), ', ')
    return vim.notify(('touchmark: no subcommand %q: %s'):format(name, known), vim.log.levels.ERROR)
  end
  require('touchmark').start()
  subcommand(arguments[2])
end

return M
