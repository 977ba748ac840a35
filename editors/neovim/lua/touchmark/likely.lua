--- Changes that are only likely an agent's: they appeared while a command of it
--- ran (UNDO-7). The user is asked whose they are, command by command. The
--- answer is a claim (ATTR-18).

local names = require('touchmark.names')
local words = require('touchmark.words')

local M = {}

--- Files and lines that a question names.
local FILES, LINES = 3, 8

--- Whether text of a change may be the user's. What it only removed comes back
--- without a question, since that takes nothing.
function M.may_be_yours(change)
  return change.likely == true and change.after ~= ''
end

local function gather(rows)
  local doubts, found = {}, {}
  for _, row in ipairs(rows) do
    local name = row.command or ''
    if not found[name] then
      found[name] = { command = row.command, session = row.session, places = {} }
      doubts[#doubts + 1] = found[name]
    end
    table.insert(found[name].places, row)
  end
  return doubts
end

--- The doubts about some changes of the queue: `{command, session, places}`. A
--- place is a part if the user is not asked about others of the same version.
---@param some table[]
---@param queue table[]
function M.of(some, queue)
  local asked, others = {}, {}
  for _, change in ipairs(some) do
    asked[change.id .. '\n' .. change.path] = true
  end
  for _, change in ipairs(queue) do
    if M.may_be_yours(change) and change.command and not asked[change.id .. '\n' .. change.path] then
      others[change.command .. '\n' .. change.path] = true
    end
  end
  return gather(vim.tbl_map(
    function(change)
      local agent = vim.tbl_filter(function(author)
        return author.kind == 'agent'
      end, change.authors)[1]
      return {
        command = change.command,
        session = agent and agent.session,
        file = change,
        lines = change.lines,
        added = words.count(change.after),
        removed = words.count(change.before),
        text = change.after,
        is_part = not change.command or others[change.command .. '\n' .. change.path] == true,
      }
    end,
    vim.tbl_filter(M.may_be_yours, some)
  ))
end

--- The doubts that a dry run of an undo has found.
function M.planned(undone)
  local sessions = {}
  for _, row in ipairs(undone.commands or {}) do
    sessions[row.command] = row.session
  end
  local rows = {}
  for _, file in ipairs(undone.files) do
    for _, left in ipairs(file.left or {}) do
      if left.cause == 'likely' then
        rows[#rows + 1] = {
          command = left.command,
          session = sessions[left.command],
          file = file,
          lines = left.lines,
          added = words.count(left.text),
          removed = left.removed,
          text = left.text,
          is_part = not left.command,
        }
      end
    end
  end
  return gather(rows)
end

--- The claims by which the user says that the changes are `session`'s, or with
--- nil the user's.
function M.claims(doubt, session)
  local function name(place)
    return place.file.uri or place.file.path
  end
  local claims, paths = {}, {}
  for _, place in ipairs(doubt.places) do
    if not place.is_part then
      if not vim.tbl_contains(paths, name(place)) then
        paths[#paths + 1] = name(place)
      end
    elseif place.lines then
      claims[#claims + 1] = { session = session, paths = { name(place) }, lines = place.lines }
    end
  end
  if #paths > 0 then
    table.insert(claims, 1, { session = session, command = doubt.command, paths = paths })
  end
  return claims
end

--- The question about a doubt.
---@param row table? the command, from `command/list`
function M.question(doubt, row)
  local files, lines = {}, {}
  for at, place in ipairs(doubt.places) do
    if at <= FILES then
      local removed = place.removed > 0 and (' -%d'):format(place.removed) or ''
      files[at] = ('%s +%d%s'):format(names.tail(place.file.path, 40), place.added, removed)
    end
    for line in place.text:gmatch('[^\n]+') do
      if #lines < LINES then
        lines[#lines + 1] = '  + ' .. names.show(line, 70)
      end
    end
  end
  if #doubt.places > FILES then
    files[#files + 1] = ('and %d more'):format(#doubt.places - FILES)
  end
  local ran = doubt.command and words.command(doubt.command, row) or 'a command'
  return ("%s: %s\n%s\nThe command's, or yours?"):format(ran, table.concat(files, ', '), table.concat(lines, '\n'))
end

--- Asks about each doubt and records the answers. Calls back with the doubts
--- that are the command's; without an answer, a doubt is not among them.
---@param owner table the link
---@param doubts table[]
---@param rows table<string, table> commands by name
function M.ask(owner, doubts, rows, callback)
  local theirs, claims = {}, {}
  for _, doubt in ipairs(doubts) do
    local buttons = doubt.session and "&Command's\n&Mine\n&Leave it" or '&Mine\n&Leave it'
    local last = doubt.session and 3 or 2
    local answer = vim.fn.confirm(M.question(doubt, rows[doubt.command]), buttons, last)
    if doubt.session and answer == 1 then
      theirs[#theirs + 1] = doubt
      vim.list_extend(claims, M.claims(doubt, doubt.session))
    elseif answer == last - 1 then
      vim.list_extend(claims, M.claims(doubt, nil))
    end
  end
  local function record(at)
    if not claims[at] then
      return callback(theirs)
    end
    owner:request('claim', claims[at], function(error)
      if error then
        return require('touchmark.notice').say(error.message)
      end
      record(at + 1)
    end)
  end
  record(1)
end

return M
