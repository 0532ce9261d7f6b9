-- Ending jobs, and chores.
--
-- Chores. Moving all tasks of a job could take long, so no script does it. It turns the job's state
-- and puts the job on the list of chores; then lease, reap and settle walk over a bounded number of
-- its tasks at a time, in the direction the state tells: of an ended job from live to parked, of a
-- going job from staged or parked to live. Whoever dies in between, the next call goes on.

local CHORE_MAX = 250     -- tasks that one script moves for a job

-- Why the last attempt ended, and its last words.
local function explain(j, t, kind, reason, log)
    call('HSET', P .. ':tasks:' .. j.id, '!' .. t.id, kind .. '\n' .. reason .. '\n' .. log)
end

local function end_job(j, state, reason_kind, reason)
    call('HSET', j.key, 'resume', j.state, 'walk', 0, 'reason_kind', reason_kind, 'reason', reason)
    call('SADD', P .. ':chores', j.id)
    close_job(j, state)
end

-- Ends the job because of one of its tasks, which is a dead letter from then on.
local function fail_job(j, t, closed, reason_kind, reason)
    park(j, t, closed)
    if not is_ended[j.state] then
        call('HSET', j.key, 'dead', t.id)
        call('ZADD', P .. ':dead', now, j.id .. '/' .. t.id)
        end_job(j, 'failed', reason_kind, reason)
    end
end

-- Lets tasks in that are staged or parked: pairs of id and record. They get fresh attempts.
local function let_in(j, tasks)
    local records, lines = {}, {worker = {}, dispatcher = {}}
    for i = 1, #tasks, 2 do
        local ref = j.id .. '/' .. tasks[i]
        local head, kind, rest =
            string.match(tasks[i + 1], '^%S+ ((%S+) %S+ %S+) %S+ %S+ %S+ (.*)$')
        local line = lines[class_of[kind]]
        records[i] = tasks[i]
        records[i + 1] = 'ready ' .. head .. ' ' .. enter(ref) .. ' 0 0 ' .. rest
        line[#line + 1] = j.created
        line[#line + 1] = ref
    end
    call('HSET', P .. ':tasks:' .. j.id, unpack(records))
    for class, line in pairs(lines) do
        if line[1] then
            line_up(j, class, #line / 2, unpack(line))
        end
    end
end

-- Walks over up to n more tasks of a job and moves each to where the job's state wants it; returns
-- how many were moved. A staged task is let in only when its plan was committed.
local function chore(id, n)
    local j, v = load_job(id, 'walk')
    local from = j and tonumber(v[JOB_FIELDS + 1]) or 0
    local ids = j and call('ZRANGE', P .. ':order:' .. id, from, from + n - 1) or {}
    local moved, wanted = 0, {}
    if ids[1] then
        local is_over = is_ended[j.state]
        local has_plan = j.state == 'running' or j.state == 'publishing'
        local records = call('HMGET', P .. ':tasks:' .. id, unpack(ids))
        for i, task in ipairs(ids) do
            local state = string.match(records[i], '^%S+')
            if is_over and is_live[state] then
                local t = parse(task, records[i])
                park(j, t, 'sweep')
                save_task(j, t)
                moved = moved + 1
            elseif not is_over and (state == 'parked' or state == 'staged' and has_plan) then
                wanted[#wanted + 1] = task
                wanted[#wanted + 1] = records[i]
            end
        end
        if wanted[1] then
            let_in(j, wanted)
        end
        call('HSET', j.key, 'walk', from + #ids)
        save_job(j)
    end
    if #ids < n then
        call('SREM', P .. ':chores', id)
    end
    return moved + #wanted / 2
end

-- One bounded step of what cancel, retry or a plan began: 1 when more is left.
local function settle(id)
    chore(id, CHORE_MAX)
    return call('SISMEMBER', P .. ':chores', id)
end

-- Ends a lease without charging the attempt.
local function give_back(j, t)
    progress(j, t, 0)
    leave(j, t)
    t.closed, t.attempt = 'release', t.attempt - 1
    make_ready(j, t)
    save_task(j, t)
    save_job(j)
end
