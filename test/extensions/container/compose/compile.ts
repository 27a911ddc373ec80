import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { compile, type Compiled } from '../../../../extensions/container/src/compose/compile.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const read = (compose: string, env = ''): Compiled =>
    compile({ name: 'demo', compose, env, stackFolder: '/srv/stacks', owner: null });
const service = (lines: string): string => `services:\n  web:\n    image: bb\n    ${lines}\n`;
const messages = ({ errors }: Compiled): string => errors.map(({ message }) => message).join('; ');

describe('A compose file', () => {
    it('puts the networks of a service in the order of their priorities', () => {
        const compiled = read(`
services: { web: { image: bb, networks: { low: {}, high: { priority: 10 }, middle: { priority: 5 } } } }
networks: { low: {}, high: {}, middle: {} }
`);
        expect(compiled.errors).to.equal([]);
        const [web] = compiled.services;
        expect(web?.containers[0]?.spec.networks.map(({ name }) => name)).to.equal([
            'demo_high',
            'demo_middle',
            'demo_low'
        ]);
    });

    it('waits for a service that it can do without only where that is active', () => {
        const file = (required: string): string => `
services:
  web: { image: bb, depends_on: { debug: { condition: service_started${required} } } }
  debug: { image: bb, profiles: [debug] }
`;
        expect(messages(read(file('')))).to.equal('There is no active service debug');
        expect(read(file(', required: false')).services.map(({ name }) => name)).to.equal(['web']);
        expect(
            read(file(', required: false'), 'COMPOSE_PROFILES=debug').services.map(({ name }) => name)
        ).to.equal(['debug', 'web']);
    });

    it('becomes containers, networks and volumes as Compose names them', () => {
        const compiled = read(
            `
x-base: &base
  image: "bb:\${TAG:-1}"
  restart: unless-stopped
services:
  web:
    <<: *base
    command: sleep "a b" \${N}
    environment: [A=1, "B=\${MISSING-x}", N, NONE]
    ports: ["8080:80", "0.0.0.0:53:53/udp", "[::1]:5:6", "7000-7001:7000-7001", "9"]
    volumes: [./data:/data, "vol:/v:ro", { type: tmpfs, target: /t, tmpfs: { size: 1m } }, /anonymous]
    depends_on: { db: { condition: service_healthy } }
    healthcheck: { test: "true", interval: 1m30s, retries: 2 }
    deploy: { resources: { limits: { cpus: "0.5", memory: 64M } } }
    networks: { front: { aliases: [w] } }
    configs: [{ source: conf, target: /etc/conf, mode: 0400 }]
    secrets: [pass]
    labels: { mine: "$$1" }
  db:
    <<: *base
    scale: 2
    stop_grace_period: 1500ms
  extra: { image: bb, profiles: [debug] }
networks: { front: { internal: true } }
volumes: { vol: { labels: [x=y] } }
configs: { conf: { content: "n=\${N}" } }
secrets: { pass: { environment: SECRET } }
`,
            '# comment\nN=5\nexport SECRET="a\\nb"\n'
        );
        expect(compiled.errors).to.equal([]);
        expect(compiled.services.map(({ name }) => name)).to.equal(['db', 'web']);
        const [db, web] = compiled.services;
        expect(db?.containers.map(({ spec }) => spec.name)).to.equal(['demo-db-1', 'demo-db-2']);
        expect(db?.containers[0]?.spec.stopSeconds).to.equal(2);
        const spec = web?.containers[0]?.spec;
        expect(spec?.image).to.equal('bb:1');
        expect(spec?.command).to.equal(['sleep', 'a b', '5']);
        expect(spec?.env).to.equal({ A: '1', B: 'x', N: '5' });
        expect(
            spec?.ports.map(
                ({ hostIp, hostPort, containerPort, protocol }) =>
                    `${hostIp} ${hostPort} ${containerPort}/${protocol}`
            )
        ).to.equal([
            '127.0.0.1 8080 80/tcp',
            '0.0.0.0 53 53/udp',
            '::1 5 6/tcp',
            '127.0.0.1 7000 7000/tcp',
            '127.0.0.1 7001 7001/tcp',
            '127.0.0.1 null 9/tcp'
        ]);
        expect(
            spec?.mounts.map(({ type, source, target, readOnly, tmpfsBytes }) => [
                type,
                source,
                target,
                readOnly,
                tmpfsBytes
            ])
        ).to.equal([
            ['bind', '/srv/stacks/demo/data', '/data', false, null],
            ['volume', 'demo_vol', '/v', true, null],
            ['tmpfs', null, '/t', false, 1_048_576],
            ['volume', null, '/anonymous', false, null]
        ]);
        expect(spec?.healthcheck).to.equal({
            test: ['CMD-SHELL', 'true'],
            intervalSeconds: 90,
            timeoutSeconds: 0,
            retries: 2,
            startSeconds: 0
        });
        expect(spec?.limits).to.equal({ memoryBytes: 67_108_864, cpus: 0.5, pids: null });
        expect(spec?.networks).to.equal([
            { name: 'demo_front', aliases: ['web', 'w'], external: false, driver: 'bridge' }
        ]);
        expect(spec?.files.map(({ path, content, mode }) => [path, content, mode])).to.equal([
            ['/etc/conf', 'n=5', 0o400],
            ['/run/secrets/pass', 'a\nb', 0o444]
        ]);
        expect(spec?.labels['mine']).to.equal('$1');
        expect(spec?.labels['com.docker.compose.project']).to.equal('demo');
        expect(compiled.networks.map(({ name, internal }) => [name, internal])).to.equal(
            [
                ['demo_front', true],
                ['demo_default', false]
            ].sort((one, other) => (one[0] === 'demo_default' ? -1 : other[0] === 'demo_default' ? 1 : 0))
        );
        expect(
            read('services: { a: { image: bb, profiles: [p] }, b: { image: bb } }', 'COMPOSE_PROFILES=p')
                .services
        ).to.have.length(2);
    });

    it('refuses by name every key that it does not carry out', () => {
        for (const [lines, key] of [
            ['build: .', 'services.web.build'],
            ['extends: { service: other }', 'services.web.extends'],
            ['env_file: .env', 'services.web.env_file'],
            ['volumes_from: [other]', 'services.web.volumes_from'],
            ['links: [db]', 'services.web.links'],
            ['group_add: [docker]', 'services.web.group_add'],
            ['device_cgroup_rules: ["a *:* rwm"]', 'services.web.device_cgroup_rules'],
            ['gpus: all', 'services.web.gpus'],
            [
                'deploy: { resources: { reservations: { devices: [] } } }',
                'services.web.deploy.resources.reservations'
            ],
            ['post_start: []', 'services.web.post_start'],
            [
                'logging: { driver: syslog, options: { syslog-address: "unix:///run/docker.sock" } }',
                'services.web.logging.driver.syslog'
            ],
            ['logging: { options: { path: /etc/cron.d/x } }', 'services.web.logging.options.path'],
            ['volumes: ["v:/x:z"]', 'services.web.volumes.0.z']
        ] as const) {
            const compiled = read(service(lines));
            expect([lines, compiled.unsupported.includes(key)]).to.equal([lines, true]);
            expect(() => compiled.refuse()).to.throw(/not carried out/);
        }
        expect(read('include: [other.yml]\nservices: { a: { image: bb } }').unsupported).to.equal([
            'include'
        ]);
        expect(
            read('services: { a: { image: bb, secrets: [s] } }\nsecrets: { s: { file: /etc/shadow } }')
                .unsupported
        ).to.equal(['secrets.s.file']);
        expect(
            read('services: { a: { image: bb } }\nnetworks: { n: { driver_opts: { x: y } } }').unsupported
        ).to.equal(['networks.n.driver_opts']);
    });

    it('is plain YAML within limits', () => {
        const bomb = [
            'a: &a [x,x,x,x,x,x,x,x,x]',
            ...'bcdefghi'
                .split('')
                .map(
                    (name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(',')}]`
                )
        ].join('\n');
        const cases: readonly (readonly [string, RegExp])[] = [
            ['services: !!js/function x', /tag/i],
            ['services: !custom { a: 1 }', /tag/i],
            ['services: { a: { image: bb }, a: { image: cc } }', /unique/i],
            ['%YAML 1.1\n---\nservices: { a: { image: bb } }', /1\.2/],
            ['services: { a: { image: bb } }\n---\nservices: {}', /document/i],
            [`x: ${'['.repeat(66)}${']'.repeat(66)}\nservices: { a: { image: bb } }`, /levels|too much/],
            [`x: &a 1\ny: [${Array(101).fill('*a').join(',')}]\nservices: { a: { image: bb } }`, /aliases/],
            [`${bomb}\nservices: { a: { image: bb } }`, /alias|anchors/i],
            [`services: { a: { image: bb } } # ${'x'.repeat(1_048_576)}`, /1 MiB/],
            ['- a', /mapping/],
            ['services: {}', /has services/],
            ['services: { __proto__: { image: bb } }', /refused|has services/]
        ];
        for (const [text, expected] of cases) {
            const compiled = read(text);
            expect(messages(compiled)).to.match(expected);
            expect(compiled.errors.length).to.be.above(0);
        }
        expect(({} as { image?: string }).image).to.be.undefined();
    });

    it('names what is wrong with its line', () => {
        const compiled = read(
            'services:\n  web:\n    image: bb\n    ports:\n      - "x:y"\n    restart: sometimes\n'
        );
        expect(compiled.errors.map(({ path, line }) => [path, line])).to.equal([
            ['services.web.ports.0', 5],
            ['services.web.restart', 6]
        ]);
        for (const lines of [
            'ports: ["99999:1"]',
            'ports: ["1-3:1-2"]',
            'ports: ["300.0.0.1:1:1"]',
            'volumes: ["v:/x"]',
            'volumes: ["~/x:/x"]',
            'volumes: ["./x:relative"]',
            'networks: [none-such]',
            'depends_on: [none-such]',
            'depends_on: [web]',
            'network_mode: "service:none"',
            'labels: { com.docker.compose.project: other }',
            'labels: [io.portico.owner=x]',
            'scale: 2\n    ports: ["80:80"]',
            'environment: { "${NEEDED:?say it}": x, A: "${NEEDED:?say it}" }',
            'command: "${"',
            'image: "-v /:/host bb"',
            'container_name: "../x"'
        ]) {
            expect([lines, read(service(lines)).errors.length > 0]).to.equal([lines, true]);
        }
    });

    it('fills variables from its own environment alone, and never as YAML', () => {
        process.env['PORTICO_TEST_SECRET'] = 'of the panel';
        const compiled = read(
            service(
                'environment: { A: "${PORTICO_TEST_SECRET:-none}", PORTICO_TEST_SECRET: }\n    command: ["${EVIL}"]'
            ),
            'EVIL="x\\nprivileged: true"'
        );
        delete process.env['PORTICO_TEST_SECRET'];
        const spec = compiled.services[0]?.containers[0]?.spec;
        expect(spec?.env).to.equal({ A: 'none' });
        expect(spec?.command).to.equal(['x\nprivileged: true']);
        expect(spec?.privileged).to.be.false();
    });
});
