--- Names of files and sessions: on the wire, and before a person's eyes.

local M = {}

--- The member of a request that names a file: `path`, or `uri` where the name
--- has bytes beyond ASCII, which need not be UTF-8.
---@param root string
---@param path string relative
function M.member(root, path)
  if not path:find('[\128-\255%%%z\1-\31]') then
    return 'path', path
  end
  local absolute = (root == '/' and '' or root) .. '/' .. path
  return 'uri',
    'file://' .. absolute:gsub('[^%w/._~-]', function(c)
      return ('%%%02X'):format(c:byte())
    end)
end

--- The relative path that an answer's object names.
---@param root string
---@param object table with `path`, and `uri` where that is lossy
function M.path_of(root, object)
  if not object.uri then
    return object.path
  end
  local absolute = object.uri:gsub('^file://', ''):gsub('%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end)
  return absolute:sub(#root + (root == '/' and 1 or 2))
end

--- Made harmless and short (SEC-4): these names come from anywhere.
---@param name string
---@param most integer? characters
function M.show(name, most)
  local shown = name:gsub('[%z\1-\31\127]', '?')
  most = most or 60
  local length = vim.fn.strchars(shown)
  if length > most then
    shown = vim.fn.strcharpart(shown, 0, most - 1) .. '…'
  end
  return shown
end

--- A path, harmless, of which the end is shown if it is long.
---@param path string
---@param most integer characters
function M.tail(path, most)
  local shown = M.show(path, 10000)
  local length = vim.fn.strchars(shown)
  return length > most and '…' .. vim.fn.strcharpart(shown, length - most + 1) or shown
end

--- How long ago a moment was, in milliseconds since 1970.
function M.ago(milliseconds)
  local seconds = math.max(0, os.time() - math.floor(milliseconds / 1000))
  if seconds < 60 then
    return 'just now'
  elseif seconds < 3600 then
    return ('%d min ago'):format(math.floor(seconds / 60))
  elseif seconds < 86400 then
    return ('%d h ago'):format(math.floor(seconds / 3600))
  end
  local days = math.floor(seconds / 86400)
  return days == 1 and '1 day ago' or ('%d days ago'):format(days)
end

--- The name of a session for people, which requests take as well: its label,
--- or its id where it has none.
---@param named table `{session, label}`
function M.session(named)
  return named.label or named.session
end

--- An author in a few characters.
---@param author table? `{kind, session, label}`
function M.author(author)
  if not author then
    return 'unknown'
  end
  if author.kind == 'agent' then
    return M.show(M.session(author) or 'an agent', 24)
  end
  return author.kind == 'user' and 'you' or 'unknown'
end

--- Who wrote a version or a line, with a question mark if that is only likely:
--- all that is known is that a command ran (ATTR-6).
---@param row table `{author, evidence, command}`
function M.writer(row)
  local is_likely = row.evidence == 'command' and row.command ~= nil
  return M.author(row.author) .. (is_likely and '?' or '')
end

return M
