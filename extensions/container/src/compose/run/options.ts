/** The options of `docker run`, and what each is in a compose file. */
import type { ComposeTree, ComposeValue } from '../write.ts';

/** A service while it is read. */
export class RunDraft {
    readonly service: Record<string, ComposeValue> = {};
    readonly networks: string[] = [];
    readonly aliases: string[] = [];
    readonly warnings: string[] = [];
    readonly check: Record<string, ComposeValue> = {};
    readonly logOptions: Record<string, string> = {};
    readonly ulimits: Record<string, ComposeTree> = {};
    name: string | null = null;

    /** Adds to a list of the service. */
    push(key: string, value: ComposeValue): void {
        this.service[key] = [...((this.service[key] as readonly ComposeValue[] | undefined) ?? []), value];
    }

    lacks(option: string, instead = ''): void {
        this.warnings.push(`${option} is not carried out${instead === '' ? '' : `: ${instead}`}`);
    }
}

/** What an option does with its value; an option without one gets `true` or `false`. */
export type RunOption = (draft: RunDraft, value: string, option: string) => void;

const set =
    (key: string): RunOption =>
    (draft, value) => {
        draft.service[key] = value;
    };
const push =
    (key: string): RunOption =>
    (draft, value) =>
        draft.push(key, value);
const flag =
    (key: string): RunOption =>
    (draft, value) => {
        draft.service[key] = value === 'true';
    };
const ignore: RunOption = () => undefined;
const lack =
    (instead: string): RunOption =>
    (draft, _value, option) =>
        draft.lacks(option, instead);

const network: RunOption = (draft, value, option) => {
    const [, named] = /(?:^|,)name=([^,]*)/.exec(value) ?? [];
    const name = named ?? value;
    if (named !== undefined && value !== `name=${named}`) {
        draft.lacks(option, `of ${value} only the name is taken`);
    }
    if (['host', 'none', 'bridge', 'default'].includes(name) || name.startsWith('container:')) {
        draft.service['network_mode'] = name === 'default' ? 'bridge' : name;
    } else {
        draft.networks.push(name);
    }
};

const environment: RunOption = (draft, value, option) => {
    const at = value.indexOf('=');
    if (at < 0) {
        draft.warnings.push(`${option} ${value} takes the value of the shell: give it with the stack`);
    }
    draft.push('environment', value);
};

const volume: RunOption = (draft, value) => {
    draft.push('volumes', value);
};

const mount: RunOption = (draft, value, option) => {
    const entries = value.split(',').map((part) => {
        const at = part.indexOf('=');
        return at < 0 ? ([part, 'true'] as const) : ([part.slice(0, at), part.slice(at + 1)] as const);
    });
    const known: Readonly<Record<string, string>> = {
        type: 'type',
        source: 'source',
        src: 'source',
        target: 'target',
        destination: 'target',
        dst: 'target',
        readonly: 'read_only',
        ro: 'read_only'
    };
    const written: Record<string, ComposeValue> = { type: 'volume' };
    for (const [name, given] of entries) {
        const key = Object.hasOwn(known, name) ? known[name] : undefined;
        if (key !== undefined) {
            written[key] = key === 'read_only' ? !['false', '0'].includes(given) : given;
        } else if (name === 'bind-propagation') {
            written['bind'] = { propagation: given };
        } else if (name === 'tmpfs-size') {
            written['tmpfs'] = { size: given };
        } else {
            draft.lacks(`${option} ${name}`);
        }
    }
    draft.push('volumes', written);
};

const ulimit: RunOption = (draft, value) => {
    const [name = '', limits = ''] = value.split('=');
    const [soft = '', hard = soft] = limits.split(':');
    draft.ulimits[name] = { soft: Number(soft), hard: Number(hard) };
};

const check =
    (key: string): RunOption =>
    (draft, value) => {
        draft.check[key] = key === 'test' ? ['CMD-SHELL', value] : key === 'retries' ? Number(value) : value;
    };

/** Options that take no value. */
export const bareOptions: ReadonlySet<string> = new Set([
    ...[
        '--detach',
        '--interactive',
        '--tty',
        '--publish-all',
        '--rm',
        '--init',
        '--privileged',
        '--read-only'
    ],
    ...[
        '--no-healthcheck',
        '--oom-kill-disable',
        '--sig-proxy',
        '--quiet',
        '--disable-content-trust',
        '--replace'
    ]
]);

/** Short forms, and further names. */
export const longForms: Readonly<Record<string, string>> = {
    '-a': '--attach',
    '-c': '--cpu-shares',
    '-d': '--detach',
    '-e': '--env',
    '-h': '--hostname',
    '-i': '--interactive',
    '-l': '--label',
    '-m': '--memory',
    '-p': '--publish',
    '-P': '--publish-all',
    '-q': '--quiet',
    '-t': '--tty',
    '-u': '--user',
    '-v': '--volume',
    '-w': '--workdir',
    '--net': '--network',
    '--net-alias': '--network-alias',
    '--dns-opt': '--dns-option'
};

/** What each option does; one that is not here is not carried out, and a warning says so. */
export const runOptions: Readonly<Record<string, RunOption>> = {
    '--name': (draft, value) => {
        draft.name = value;
    },
    '--publish': push('ports'),
    '--publish-all': lack('name the ports'),
    '--volume': volume,
    '--mount': mount,
    '--tmpfs': push('tmpfs'),
    '--env': environment,
    '--env-file': lack('give the variables with the stack'),
    '--label': push('labels'),
    '--user': set('user'),
    '--workdir': set('working_dir'),
    '--hostname': set('hostname'),
    '--entrypoint': (draft, value) => {
        draft.service['entrypoint'] = [value];
    },
    '--interactive': flag('stdin_open'),
    '--tty': flag('tty'),
    '--init': flag('init'),
    '--privileged': flag('privileged'),
    '--read-only': flag('read_only'),
    '--detach': ignore,
    '--attach': ignore,
    '--quiet': ignore,
    '--sig-proxy': ignore,
    '--replace': ignore,
    '--pull': ignore,
    '--rm': lack('a service stays'),
    '--restart': set('restart'),
    '--memory': set('mem_limit'),
    '--cpus': set('cpus'),
    '--pids-limit': (draft, value) => {
        draft.service['pids_limit'] = Number(value);
    },
    '--shm-size': set('shm_size'),
    '--ulimit': ulimit,
    '--cap-add': push('cap_add'),
    '--cap-drop': push('cap_drop'),
    '--device': push('devices'),
    '--security-opt': push('security_opt'),
    '--sysctl': push('sysctls'),
    '--network': network,
    '--network-alias': (draft, value) => {
        draft.aliases.push(value);
    },
    '--add-host': push('extra_hosts'),
    '--dns': push('dns'),
    '--dns-search': push('dns_search'),
    '--expose': push('expose'),
    '--pid': set('pid'),
    '--ipc': set('ipc'),
    '--uts': set('uts'),
    '--userns': set('userns_mode'),
    '--cgroup-parent': set('cgroup_parent'),
    '--runtime': set('runtime'),
    '--stop-signal': set('stop_signal'),
    '--stop-timeout': (draft, value) => {
        draft.service['stop_grace_period'] = `${value}s`;
    },
    '--log-driver': (draft, value) => {
        draft.service['logging'] = { driver: value };
    },
    '--log-opt': (draft, value) => {
        const at = value.indexOf('=');
        draft.logOptions[value.slice(0, at)] = value.slice(at + 1);
    },
    '--health-cmd': check('test'),
    '--health-interval': check('interval'),
    '--health-timeout': check('timeout'),
    '--health-retries': check('retries'),
    '--health-start-period': check('start_period'),
    '--no-healthcheck': (draft) => {
        draft.check['disable'] = true;
    },
    '--volumes-from': lack('name the volumes'),
    '--link': lack('services of one network find each other by name'),
    '--gpus': lack('name the devices')
};
