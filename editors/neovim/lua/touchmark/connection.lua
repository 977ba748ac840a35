--- One connection to one daemon, over a pipe of the editor's own event loop.
---
--- Not over `vim.lsp.rpc.connect`: it is missing in 0.7, knows no Unix sockets
--- before 0.10, says aloud when nobody listens, and logs into the language
--- servers' log. This way is the same in every version.

local errors = require('touchmark.errors')
local frames = require('touchmark.frames')
local trust = require('touchmark.trust')
local uv = vim.uv or vim.loop

local M = {}

--- A daemon that is stopped reads nothing. What waits for it is bounded: then
--- the connection is given up, and everything is told anew by the next one.
local MOST_WAITING = 1024 * 1024

--- Connects, unless others may have put the socket there (SEC-8). Calls back on the main loop with an error, or with nil and the
--- connection. `on_event(params)` and `on_close(reason)` are called there too.
---@param socket string
---@param handlers {on_event: function, on_close: function}
---@param callback fun(error: string?, connection: table?)
function M.open(socket, handlers, callback)
  local pipe = uv.new_pipe(false)
  local waiting = {}
  local next_id = 1
  local open = true
  local connection = {}
  local on_event = errors.guarded('event', handlers.on_event)

  local function close(reason)
    if not open then
      return
    end
    open = false
    if not pipe:is_closing() then
      pipe:close()
    end
    local orphans = waiting
    waiting = {}
    vim.schedule(function()
      for _, answer in pairs(orphans) do
        answer({ message = reason })
      end
      handlers.on_close(reason)
    end)
  end

  local function take(body)
    local ok, message = pcall(vim.json.decode, body, { luanil = { object = true } })
    if not ok or type(message) ~= 'table' then
      return close('the daemon sent what is no JSON')
    end
    if message.method == 'event' then
      vim.schedule(function()
        if open then
          on_event(message.params)
        end
      end)
    elseif message.id ~= nil and waiting[message.id] then
      local answer = waiting[message.id]
      waiting[message.id] = nil
      vim.schedule(function()
        answer(message.error, message.result)
      end)
    end
  end

  --- Asks. `answer(error, result)`: the error has `message` and `data`.
  function connection.request(method, params, answer)
    if not open then
      return vim.schedule(function()
        answer({ message = 'not connected' })
      end)
    end
    local id = next_id
    next_id = id + 1
    waiting[id] = errors.guarded(method, answer)
    local message = { jsonrpc = '2.0', id = id, method = method, params = params }
    if params and next(params) == nil then
      message.params = nil
    end
    pipe:write(frames.encode(message), function(error)
      if error then
        close(error)
      end
    end)
    if uv.stream_get_write_queue_size(pipe) > MOST_WAITING then
      close('the daemon does not read')
    end
  end

  function connection.close()
    close('closed')
  end

  local why = trust.against(socket)
  if why then
    pipe:close()
    open = false
    return vim.schedule(function()
      callback(why)
    end)
  end
  pipe:connect(socket, function(error)
    if error then
      pipe:close()
      open = false
      return vim.schedule(function()
        callback(error)
      end)
    end
    local push = frames.decoder()
    pipe:read_start(function(read_error, chunk)
      if read_error or not chunk then
        return close(read_error or 'the daemon ended')
      end
      local bodies, wrong = push(chunk)
      if not bodies then
        return close(wrong)
      end
      for _, body in ipairs(bodies) do
        take(body)
      end
    end)
    vim.schedule(function()
      callback(nil, connection)
    end)
  end)
end

return M
