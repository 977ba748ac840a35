--- What the daemon has told about files that are open here: who changed them,
--- and whose copies are out of date.

local names = require('touchmark.names')

local M = {}

--- Versions remembered for each file, to tell whose content was loaded.
local MOST = 64

--- By link, then by path: {version, stale = {session = state}, authors = {hash
--- = author}, order = {hash...}}.
local known = setmetatable({}, { __mode = 'k' })

--- What is known of a file; made where it is not.
function M.of(link, path)
  known[link] = known[link] or {}
  local file = known[link][path]
  if not file then
    file = { stale = {}, authors = {}, order = {} }
    known[link][path] = file
  end
  return file
end

--- The same, or nil.
function M.known(link, path)
  return known[link] and known[link][path]
end

--- Forgets what may have changed while nobody listened.
function M.forget(link)
  known[link] = nil
end

--- Forgets a file that is no longer open.
function M.drop(link, path)
  if known[link] then
    known[link][path] = nil
  end
end

local function number(clock)
  return tonumber((clock or ''):match(':(%d+)$')) or -1
end

--- Takes in a version. An older one does not say anew whose a content is.
local function take(file, version, older)
  local hash = version.hash
  if hash and not (older and file.authors[hash]) then
    if file.authors[hash] == nil then
      table.insert(file.order, hash)
      if #file.order > MOST then
        file.authors[table.remove(file.order, 1)] = nil
      end
    end
    file.authors[hash] = version.author
  end
  local latest = file.version
  if version.amends then
    if latest and latest.clock == version.amends then
      latest.author, latest.evidence = version.author, version.evidence
    end
  elseif not latest or number(version.clock) > number(latest.clock) then
    file.version = version
  end
end

--- Asks what is known of a file and calls back when it is told. What is still
--- to be looked at comes as an event: a question as of now, in the middle of a
--- save, would make its middle a version of its own (ATTR-12).
function M.ask(link, path, callback)
  local member, name = names.member(link.root, path)
  link:request('file/history', { [member] = name, limit = MOST, sync = false }, function(error, history)
    if error then
      return
    end
    local file = M.of(link, path)
    -- The newest first. What corrects a version comes before it.
    local corrections = {}
    for i, version in ipairs(history.versions) do
      local baseline = M.is_baseline(history, i)
      if version.amends then
        corrections[version.amends] = corrections[version.amends] or version
      elseif not baseline then
        local correction = corrections[version.clock]
        if correction then
          version.author, version.evidence = correction.author, correction.evidence
        end
        take(file, version, true)
      end
    end
    callback(file)
  end)
  -- Only sessions that are open and hold something stale: a question in the
  -- name of a closed one would open it.
  link:request('session/list', {}, function(error, list)
    if error then
      return
    end
    for _, row in ipairs(list.sessions) do
      if row.open and row.stale > 0 then
        M.ask_session(link, path, names.session(row), callback)
      end
    end
  end)
end

--- Whether a row of a history is what the file contained when it was first
--- read, which is no change.
function M.is_baseline(history, at)
  local version = history.versions[at]
  local is_oldest = at == #history.versions and not history.more
  return is_oldest and version.author.kind == 'unknown' and version.evidence == 'gap'
end

--- Asks what one session's copy is worth.
function M.ask_session(link, path, session, callback)
  local _, name = names.member(link.root, path)
  link:request('file/status', { session = session, paths = { name }, sync = false }, function(error, status)
    local state = not error and status.files[1]
    if state then
      local file = M.of(link, path)
      local old = state.state == 'stale' or state.state == 'deleted'
      file.stale[session] = old and state.state or nil
      callback(file)
    end
  end)
end

--- Takes in an event. Returns the path that it concerns and what is known of
--- it, if that is a file that is open.
function M.event(link, event, callback)
  if event.type == 'version' then
    local path = names.path_of(link.root, event.version)
    local file = M.known(link, path)
    if file then
      take(file, event.version)
      -- Whoever wrote it has seen it.
      local writer = names.session(event.version.author)
      if writer then
        file.stale[writer] = nil
      end
      callback(path, file)
    end
  elseif event.type == 'stale' then
    local path = names.path_of(link.root, event.file)
    local file = M.known(link, path)
    if file then
      file.stale[names.session(event)] = event.file.state
      callback(path, file)
    end
  elseif event.type == 'read' then
    local path = names.path_of(link.root, event)
    local file = M.known(link, path)
    -- A part that was read again leaves the rest as old as it was.
    local reader = names.session(event)
    if file and file.stale[reader] then
      M.ask_session(link, path, reader, function(now)
        callback(path, now)
      end)
    end
  elseif event.type == 'session' and event.phase ~= 'opened' then
    for path, file in pairs(known[link] or {}) do
      local session = names.session(event)
      if file.stale[session] then
        file.stale[session] = nil
        callback(path, file)
      end
    end
  end
end

return M
