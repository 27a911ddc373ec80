import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { compile } from '../../../../extensions/container/src/compose/compile.ts';
import {
    compareExposure,
    consentFor,
    deviceOf,
    type Finding,
    judge,
    type PolicyContext,
    refusals
} from '../../../../extensions/container/src/policy/judge.ts';
import { newSpec } from '../../../../extensions/container/src/spec/input.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const context: PolicyContext = {
    roots: ['/srv/binds', '/srv/stacks/demo'],
    links: new Set(['/srv/binds/link/x']),
    safeCapabilities: ['NET_RAW'],
    sockets: ['/opt/engine/e.sock'],
    exceptions: [],
    siblings: new Set(['container:demo-db-1'])
};

function service(lines: string, rest = ''): readonly string[] {
    const compose = `services:\n  web:\n    image: bb\n${lines
        .trim()
        .split('\n')
        .map((line) => `    ${line}`)
        .join('\n')}\n  db: { image: bb }\n${rest}`;
    const compiled = compile({ name: 'demo', compose, env: '', stackFolder: '/srv/stacks', owner: null });
    expect(compiled.errors).to.equal([]);
    return compiled.services.flatMap(({ name, containers }) =>
        containers.flatMap(({ spec }) =>
            refusals(judge(spec, name, { ...context, siblings: compiled.siblings })).map(
                ({ rule, detail }) => `${rule} ${detail}`
            )
        )
    );
}

const bind = (source: string) =>
    refusals(
        judge(
            newSpec({
                name: 'one',
                image: 'bb',
                mounts: [{ type: 'bind', source, target: '/x', readOnly: true }]
            }),
            null,
            context
        )
    ).map(({ rule, detail }) => `${rule} ${detail}`);

describe('The policy', () => {
    it('refuses what takes the walls down, however a compose file writes it', () => {
        const cases: readonly (readonly [string, readonly string[], string?])[] = [
            ['privileged: true', ['privileged true']],
            ['privileged: "true"', ['privileged true']],
            ['network_mode: host', ['network-host host']],
            ['pid: host', ['pid-host host']],
            ['ipc: host', ['ipc-host host']],
            ['uts: host', ['uts-host host']],
            ['userns_mode: host', ['userns-host host']],
            ['userns_mode: keep-id', ['userns-host keep-id']],
            ['pid: "container:other"', ['namespace-join container:other']],
            ['ipc: "container:other"', ['namespace-join container:other']],
            ['network_mode: "container:other"', ['namespace-join container:other']],
            ['network_mode: "ns:/proc/1/ns/net"', ['namespace-join ns:/proc/1/ns/net']],
            ['network_mode: "service:db"', []],
            ['pid: "service:db"', []],
            ['cap_add: [SYS_ADMIN]', ['cap-add SYS_ADMIN']],
            ['cap_add: [cap_sys_admin]', ['cap-add cap_sys_admin']],
            ['cap_add: [all]', ['cap-add all']],
            ['cap_add: [net_raw, CAP_NET_RAW]', []],
            ['devices: ["/dev/sda:/dev/x:r"]', ['device /dev/sda:/dev/x:r']],
            ['security_opt: ["seccomp=unconfined"]', ['security-opt seccomp=unconfined']],
            ['security_opt: ["no-new-privileges:false"]', ['security-opt no-new-privileges:false']],
            ['security_opt: ["no-new-privileges:true"]', []],
            ['security_opt: [systempaths=unconfined]', ['security-opt systempaths=unconfined']],
            ['sysctls: { kernel.core_pattern: "|/x" }', ['sysctl kernel.core_pattern=|/x']],
            ['sysctls: [net.ipv4.ip_forward=1]', ['sysctl net.ipv4.ip_forward=1']],
            ['cgroup_parent: /', ['cgroup-parent /']],
            ['runtime: kata', ['runtime kata']],
            ['volumes: ["./data:/x:rshared"]', ['propagation rshared']],
            [
                'volumes: [{ type: bind, source: ./data, target: /x, bind: { propagation: slave } }]',
                ['propagation slave']
            ],
            [
                'volumes: ["v:/x"]',
                ['volume-device /etc'],
                'volumes: { v: { driver_opts: { type: none, o: bind, device: /etc } } }\n'
            ],
            [
                'volumes: ["v:/x"]',
                ['volume-device :/export'],
                'volumes: { v: { driver_opts: { type: nfs, o: "addr=10.0.0.1", device: ":/export" } } }\n'
            ],
            [
                'volumes: ["v:/x"]',
                ['volume-device mountpoint=/etc'],
                'volumes: { v: { driver: local-persist, driver_opts: { mountpoint: /etc } } }\n'
            ],
            [
                'volumes: ["v:/x"]',
                [],
                'volumes: { v: { driver_opts: { type: tmpfs, device: tmpfs, o: "size=1m" } } }\n'
            ],
            ['networks: [out]', ['network-host host'], 'networks: { out: { external: true, name: host } }\n']
        ];
        for (const [lines, expected, rest] of cases) {
            expect([lines, service(lines, rest)]).to.equal([lines, [...expected]]);
        }
    });

    it('lets binds lie below their folders alone', () => {
        const out = (path: string) => [`bind-outside ${path}`];
        expect(bind('/srv/binds')).to.equal([]);
        expect(bind('/srv/binds/a/../b')).to.equal([]);
        expect(bind('/etc')).to.equal(out('/etc'));
        expect(bind('/srv/bindsx')).to.equal(out('/srv/bindsx'));
        expect(bind('/srv/binds/../../etc')).to.equal(out('/srv/binds/../../etc'));
        expect(bind('/srv/binds/link/x')).to.equal(out('/srv/binds/link/x'));
        expect(bind('/srv')).to.equal(out('/srv'));
        expect(service('volumes: ["./data:/x"]')).to.equal([]);
        expect(service('volumes: ["../other/data:/x"]')).to.equal(out('../other/data'));
        expect(service('volumes: ["./../../../etc:/x"]')).to.equal(out('./../../../etc'));
    });

    it('finds the socket of an engine in a bind, also in the folders above it and below a folder that is allowed', () => {
        for (const path of [
            '/run/docker.sock',
            '/var/run/docker.sock',
            '/run/podman/podman.sock',
            '/run/',
            '/',
            '/opt/engine'
        ]) {
            expect(bind(path)).to.include(`engine-socket ${path}`);
        }
        const open = { ...context, roots: ['/'] };
        const spec = newSpec({
            name: 'one',
            image: 'bb',
            mounts: [{ type: 'bind', source: '/var/run', target: '/x', readOnly: true }]
        });
        expect(refusals(judge(spec, null, open)).map(({ rule }) => rule)).to.equal(['engine-socket']);
    });

    it('takes an exception only for exactly its rule, service and value', () => {
        const spec = newSpec({ name: 'one', image: 'bb', capAdd: ['SYS_ADMIN'], privileged: true });
        const refused = (exception: object, of: string | null) =>
            refusals(
                judge(spec, of, {
                    ...context,
                    exceptions: [{ rule: 'cap-add', service: null, detail: 'SYS_ADMIN', ...exception }]
                })
            ).map(({ rule }) => rule);
        expect(refused({}, null)).to.equal(['privileged']);
        expect(refused({ detail: 'sys_admin' }, null)).to.equal(['privileged', 'cap-add']);
        expect(refused({ rule: 'device' }, null)).to.equal(['privileged', 'cap-add']);
        expect(refused({}, 'web')).to.equal(['privileged', 'cap-add']);
        expect(refused({ service: 'web' }, 'web')).to.equal(['privileged']);
    });

    it('knows which options of a volume mount something', () => {
        expect(deviceOf('local', {})).to.be.null();
        expect(deviceOf('local', { o: 'size=100m' })).to.be.null();
        expect(deviceOf('local', { type: 'tmpfs', device: 'tmpfs' })).to.be.null();
        expect(deviceOf('local', { type: 'tmpfs', device: '/etc' })).to.equal('/etc');
        expect(deviceOf('local', { Device: '/etc' })).to.equal('/etc');
        expect(deviceOf('local', { type: 'overlay', o: 'lowerdir=/,upperdir=/etc' })).to.equal(
            'lowerdir=/,upperdir=/etc'
        );
        expect(deviceOf('local', { type: 'tmpfs', DEVICE: '/etc' })).to.equal('/etc');
        expect(deviceOf('local', { mountpoint: '/etc' })).to.equal('mountpoint=/etc');
        expect(deviceOf('rclone', {})).to.equal('rclone');
    });

    it('asks for consent to what is exposed anew, bound to the specs', () => {
        const spec = (hostIp: string, image = 'bb') =>
            newSpec({
                name: 'one',
                image,
                ports: [{ containerPort: 80, hostPort: 80, hostIp, protocol: 'tcp' }]
            });
        const of = (hostIp: string): readonly Finding[] => judge(spec(hostIp), null, context);
        expect(of('127.0.0.1').concat(of('127.9.9.9'), of('::1'))).to.equal([]);
        for (const address of ['0.0.0.0', '::', '10.0.0.1', '::ffff:127.0.0.1']) {
            expect(of(address).map(({ rule }) => rule)).to.equal(['public-port']);
        }
        const added = compareExposure([], of('0.0.0.0'));
        expect(added.added.map(({ detail }) => detail)).to.equal(['0.0.0.0:80:80/tcp']);
        expect(compareExposure(of('0.0.0.0'), of('0.0.0.0')).added).to.equal([]);
        expect(compareExposure(of('0.0.0.0'), of('127.0.0.1')).removed).to.have.length(1);
        const consent = consentFor('container:one', added, [spec('0.0.0.0')]);
        expect(consent).to.be.a.string();
        expect(consentFor('container:one', added, [spec('0.0.0.0')])).to.equal(consent);
        expect(consentFor('container:one', added, [spec('0.0.0.0', 'evil')])).to.not.equal(consent);
        expect(consentFor('container:two', added, [spec('0.0.0.0')])).to.not.equal(consent);
        expect(consentFor('container:one', compareExposure([], []), [spec('0.0.0.0')])).to.be.null();
    });
});
