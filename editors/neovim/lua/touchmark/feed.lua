--- Events as lines, the newest last.

local config = require('touchmark.config')
local names = require('touchmark.names')

local M = {}

local entries = {}
local listeners = {}

local VERBS = { created = 'created', modified = 'edited', deleted = 'deleted', renamed = 'renamed' }
local PHASES = { begun = 'editing', committed = 'committed', aborted = 'aborted', lapsed = 'lapsed' }
local NOTES = {
  marked = 'marked',
  command = 'by a command',
  editor = 'saved in an editor',
  gap = 'while touchmark was not watching',
}

local function clock_time(milliseconds)
  return os.date('%H:%M:%S', math.floor(milliseconds / 1000))
end
M.clock_time = clock_time

--- What is remarkable about a version, in a few words.
local function notes_of(version)
  local notes = {}
  if version.amends then
    notes[#notes + 1] = 'corrected'
  end
  if version.from then
    notes[#notes + 1] = 'from ' .. names.show(version.from)
  end
  notes[#notes + 1] = version.formatted and 'by a formatter' or NOTES[version.evidence]
  for _, mark in ipairs({ 'late', 'provisional', 'overwritten', 'unobserved' }) do
    if version[mark] then
      notes[#notes + 1] = mark
    end
  end
  return table.concat(notes, ', ')
end

--- A version as a line of `:Touchmark history`. A baseline is what the file
--- contained when touchmark first read it: no author's change.
---@param version table
---@param is_baseline boolean
function M.history_line(version, is_baseline)
  local who, did, notes = names.writer(version), VERBS[version.kind] or version.kind, notes_of(version)
  if is_baseline then
    who, did, notes = '', 'baseline', 'as first seen'
  end
  local line = ('%s  %-11s  %-14s  %-9s  %s'):format(
    clock_time(version.time),
    names.ago(version.time),
    who,
    did,
    notes
  )
  return (line:gsub('%s+$', ''))
end

local function line_of(event, root)
  local function line(time, who, verb, path, note)
    return ('%s  %-14s  %-9s  %-32s  %-9s %s'):format(clock_time(time), who, verb, path, '', note or '')
  end
  local now = os.time() * 1000
  local agent = event.session and names.show(names.session(event), 24)
  if event.type == 'version' then
    local version, lines = event.version, event.lines
    return ('%s  %-14s  %-9s  %-32s  %-9s %s'):format(
      clock_time(version.time),
      names.writer(version),
      VERBS[version.kind] or version.kind,
      names.tail(names.path_of(root, version), 32),
      lines and ('+%d -%d'):format(lines.added, lines.removed) or '',
      notes_of(version)
    )
  elseif event.type == 'read' then
    local verb = (event.verdict == 'first' or event.verdict == 'extends') and 'read' or 're-read'
    return line(now, agent, verb, names.show(names.path_of(root, event)))
  elseif event.type == 'edit' then
    local first = event.paths[1] and names.show(event.paths[1]) or ''
    local more = #event.paths > 1 and ('and %d more'):format(#event.paths - 1)
    return line(now, agent, PHASES[event.phase] or event.phase, first, more)
  elseif event.type == 'session' then
    return line(now, agent, event.phase, '')
  elseif event.type == 'stale' then
    local what = event.file.state == 'deleted' and 'the file is gone' or 'its copy is out of date'
    return line(now, agent, 'stale', names.show(names.path_of(root, event.file)), what)
  elseif event.type == 'degraded' then
    return line(now, 'touchmark', 'degraded', event.path and names.show(event.path) or '', names.show(event.cause))
  elseif event.type == 'recovered' then
    return line(now, 'touchmark', 'kept', names.show(event.path), 'in ' .. names.show(event.kept))
  elseif event.type == 'overflow' then
    return line(now, 'touchmark', 'overflow', '', 'everything is compared with the disk')
  end
end

--- Takes in an event.
function M.event(owner, event)
  local last = entries[#entries]
  if
    event.type == 'stale'
    and last
    and last.version
    and last.owner == owner
    and last.version.path == event.file.path
  then
    -- What a version made stale stands beside it.
    local who = names.show(names.session(event), 24)
    last.line = last.line .. (last.stale and ', ' or (last.line:match('%s$') and '' or '  ') .. 'stale for ') .. who
    last.stale = true
  else
    local line = line_of(event, owner.root)
    if not line then
      return -- Of a newer daemon's.
    end
    entries[#entries + 1] = { line = line, owner = owner, version = event.type == 'version' and event.version or nil }
    if #entries > config.options.feed then
      table.remove(entries, 1)
    end
  end
  for _, listener in pairs(listeners) do
    listener()
  end
end

--- All lines.
function M.lines()
  return vim.tbl_map(function(entry)
    return (entry.line:gsub('%s+$', ''))
  end, entries)
end

--- Has `listener()` called for each event, until it is called with nil.
function M.listen(name, listener)
  listeners[name] = listener
end

return M
