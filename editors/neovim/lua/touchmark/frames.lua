--- The wire for editors: JSON-RPC 2.0, each message behind `Content-Length: N`
--- and an empty line.

local M = {}

--- No message of the daemon's is larger (LIM-1), and no header comes near this.
local MOST_BODY = 64 * 1024 * 1024
local MOST_HEADER = 4096

--- A message as bytes.
---@param message table
---@return string
function M.encode(message)
  local body = vim.json.encode(message)
  return ('Content-Length: %d\r\n\r\n%s'):format(#body, body)
end

--- Cuts a stream of bytes into bodies. `push(chunk)` returns the bodies that
--- are whole by now, in order; or nil and why this is no such stream.
---@return fun(chunk: string): string[]?, string?
function M.decoder()
  -- Pieces are joined once, when they are enough: a large answer comes in
  -- hundreds of them.
  local pieces, held = {}, 0
  local wanted -- bytes of the body that is being read

  return function(chunk)
    pieces[#pieces + 1] = chunk
    held = held + #chunk
    if wanted and held < wanted then
      return {}
    end
    local bytes = table.concat(pieces)
    local bodies = {}
    local at = 1
    while true do
      if not wanted then
        local head_end, body_start = bytes:find('\r\n\r\n', at, true)
        if not head_end then
          if #bytes - at + 1 > MOST_HEADER then
            return nil, 'a header without an end'
          end
          break
        end
        local header = bytes:sub(at, head_end + 1):lower()
        wanted = tonumber(header:match('content%-length:%s*(%d+)%s*\r\n'))
        if not wanted then
          return nil, 'a header without a length'
        end
        if wanted > MOST_BODY then
          return nil, 'a message of ' .. wanted .. ' bytes'
        end
        at = body_start + 1
      end
      if #bytes - at + 1 < wanted then
        break
      end
      bodies[#bodies + 1] = bytes:sub(at, at + wanted - 1)
      at = at + wanted
      wanted = nil
    end
    local rest = bytes:sub(at)
    pieces, held = { rest }, #rest
    return bodies
  end
end

return M
