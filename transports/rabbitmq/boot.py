"""How the Erlang machine is started: what it is told, and what it does before RabbitMQ.

No distribution, no epmd. The node has a name, which RabbitMQ needs, but does not listen for other nodes
(`-dist_listen false`); nor does it ask epmd anything, since a port is given instead (`-erl_epmd_port`). With the name
on the command line RabbitMQ's own check, which starts an epmd for good, is left out. All of this is in the environment
(ERL_FLAGS), so that it holds for any Erlang machine that the node might start.

~/.erlang runs before RabbitMQ, and makes four things so:

- RabbitMQ's epmd monitor is replaced by one that does nothing: every minute it would start an Erlang machine of its
  own, in the middle of what is measured, to bring up an epmd on port 4369.
- SIGTERM ends the node at once, like SIGKILL. What it holds is thrown away, and a proper end takes seconds.
- End of file on stdin ends it too: the other end is held by whoever started it, and closes however that one ends.
- RabbitMQ's modules are loaded together, on all processors. Left to itself, RabbitMQ loads the same thousand
  modules one by one, looking for each in ninety folders: 3 of the 4.5 s that a start took.
"""

from __future__ import annotations

import os
from pathlib import Path

NO_DISTRIBUTION = "-dist_listen false -start_epmd false -erl_epmd_port 1"
ARGUMENTS = "-sname {name} +B i"
END_AT_END_OF_FILE = """\
spawn(fun() ->
    Stdin = open_port({fd, 0, 0}, [in, eof, binary]),
    receive {Stdin, eof} -> erlang:halt(0, [{flush, false}]) end
end).
"""
STARTUP = """\
os:set_signal(sigterm, default).
Described = fun(App) ->
    case file:consult(code:where_is_file(atom_to_list(App) ++ ".app")) of
        {ok, [{application, _, About}]} -> About;
        _ -> []
    end
end.
Needed = fun Needed([], Known) -> Known;
             Needed([App | Apps], Known) when is_map_key(App, Known) -> Needed(Apps, Known);
             Needed([App | Apps], Known) ->
                 About = Described(App),
                 More = proplists:get_value(applications, About, []),
                 Needed(More ++ Apps, Known#{App => proplists:get_value(modules, About, [])})
         end.
Apps = Needed([rabbit], #{}).
code:add_pathsa([Folder || App <- maps:keys(Apps), Folder <- [code:lib_dir(App, ebin)], is_list(Folder)]).
[code:ensure_modules_loaded(Modules) || Modules <- maps:values(Apps)].
{ok, rabbit_epmd_monitor, Idle} = compile:forms([
    {attribute, 1, module, rabbit_epmd_monitor},
    {attribute, 1, export, [{start_link, 0}]},
    {function, 1, start_link, 0, [{clause, 1, [], [], [{atom, 1, ignore}]}]}
]).
{module, rabbit_epmd_monitor} = code:load_binary(rabbit_epmd_monitor, "idle", Idle).
"""
"""A module that cannot be loaded early is loaded when it is called, as ever."""
LOOPBACK_NAMES = '{lookup, [file]}.\n{host, {127,0,0,1}, ["localhost"]}.\n'
"""Spares the machine its helpers for looking up names."""


def startup(outlives_us: bool) -> str:
    return STARTUP if outlives_us else END_AT_END_OF_FILE + STARTUP


def environment(folder: Path, name: str) -> dict[str, str]:
    """All of it: nothing of ours is inherited but PATH, since any RABBITMQ_ or ERL_ variable could lead astray."""
    nowhere = str(folder / "none")
    return {
        "PATH": os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/bin", "/usr/bin", "/bin")),
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder / "home"),
        "ERL_INETRC": str(folder / "inetrc"),
        "ERL_FLAGS": NO_DISTRIBUTION,
        "ERL_EPMD_PORT": "1",  # nobody's: whatever else fails, no epmd of somebody else's hears of us
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_CRASH_DUMP": os.devnull,
        "RUNNING_UNDER_SYSTEMD": "true",  # the script becomes the node, instead of waiting for it
        "RABBITMQ_NODENAME": name,
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ARGUMENTS.format(name=name),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.config"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": nowhere,
        "RABBITMQ_CONFIG_FILES": nowhere,
        "RABBITMQ_CONF_ENV_FILE": nowhere,
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_PID_FILE": str(folder / "data" / "pid"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": str(folder / "log" / "node.log"),
    }
