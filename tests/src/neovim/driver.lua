-- Runs in a Neovim under test. It reads requests from a socket, one JSON text
-- per line: `{"lua": code}` runs code and answers with the result,
-- `{"until": code}` runs code repeatedly until the result is true while the
-- editor's own loop continues, `{"keys": keys}` types keys, and `{"mode": ""}`
-- answers with the mode.
local uv = vim.uv or vim.loop
local pipe = uv.new_pipe(false)
local PATIENCE, STEP = 30000, 5

local function run(code)
  local chunk, wrong = loadstring(code)
  if not chunk then
    return false, wrong
  end
  return xpcall(chunk, debug.traceback)
end

local function answer(ok, value)
  local encoded, text = pcall(vim.json.encode, { ok = ok, value = value == nil and vim.NIL or value })
  if not encoded then
    text = vim.json.encode({ ok = false, value = tostring(text) })
  end
  pipe:write(text .. '\n')
end

local function wait(code)
  local began = uv.now()
  local timer = uv.new_timer()
  timer:start(0, STEP, vim.schedule_wrap(function()
    if timer:is_closing() then
      return
    end
    local ok, value = run(code)
    if ok and not value and uv.now() - began < PATIENCE then
      return
    end
    timer:close()
    if ok and not value then
      local mode = vim.json.encode(vim.api.nvim_get_mode())
      local said = vim.fn.execute('messages')
      return answer(false, ('this never became true: %s; mode %s; messages: %s'):format(code, mode, said))
    end
    answer(ok, value)
  end))
end

local rest = ''
pipe:connect(uv.os_getenv('TOUCHMARK_TEST_DRIVER'), function(error)
  assert(not error, error)
  pipe:read_start(function(_, chunk)
    if not chunk then
      return vim.schedule(function()
        vim.cmd('qall!')
      end)
    end
    rest = rest .. chunk
    local line, behind = rest:match('^(.-)\n(.*)$')
    if not line then
      return
    end
    rest = behind
    local ask = vim.json.decode(line)
    -- Only these work while the editor waits for the user's answer.
    if ask.keys then
      vim.api.nvim_input(ask.keys)
      return answer(true)
    elseif ask.mode then
      return answer(true, vim.api.nvim_get_mode())
    end
    vim.schedule(function()
      if ask['until'] then
        wait(ask['until'])
      else
        answer(run(ask.lua))
      end
    end)
  end)
end)
