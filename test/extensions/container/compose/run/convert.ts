import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { compile } from '../../../../../extensions/container/src/compose/compile.ts';
import { composeFromRun } from '../../../../../extensions/container/src/compose/run/convert.ts';
import { emptySpec, type Spec } from '../../../../../extensions/container/src/spec/spec.ts';

export const lab = Lab.script();
const { describe, it } = lab;

/** The spec of the one service that a line comes to. */
function specOf(line: string, env = ''): { spec: Spec; service: string; warnings: readonly string[] } {
    const { compose, warnings } = composeFromRun(line);
    const compiled = compile({ name: 'demo', compose, env, stackFolder: '/srv', owner: null });
    expect([compiled.errors, compiled.unsupported]).to.equal([[], []]);
    const [container] = compiled.services.flatMap(({ containers }) => containers);
    return { spec: container?.spec ?? emptySpec, service: container?.service ?? '', warnings };
}

describe('composeFromRun', () => {
    it('writes what the line says', () => {
        const { spec, service, warnings } = specOf(
            `$ sudo docker run -dit --rm --name=web -p8080:80 -p 0.0.0.0:53:53/udp \\
              -e A=1 -e 'B=two words' --env "C=\\"q\\"" -v data:/data -v /srv/www:/www:ro --tmpfs /run:size=1m \\
              --mount type=volume,src=more,dst=/more,readonly --restart on-failure:3 -m 64m --cpus 0.5 \\
              --network back --network-alias w -l mine=1 --ulimit nofile=10:20 --cap-drop ALL --user 5:6 -w /w \\
              --health-cmd 'curl -f http://x' --health-interval=5s --health-retries 2 --stop-timeout 3 \\
              --log-driver json-file --log-opt max-size=1m --shm-size 2m --init --read-only --gpus all \\
              registry.example:5000/team/app:1.2 serve --port 80 "$HOME"`
        );
        expect(spec).to.include({
            name: 'web',
            image: 'registry.example:5000/team/app:1.2',
            command: ['serve', '--port', '80', '$HOME'],
            env: { A: '1', B: 'two words', C: '"q"' },
            restart: 'on-failure',
            restartRetries: 3,
            user: '5:6',
            workdir: '/w',
            tty: true,
            stdinOpen: true,
            init: true,
            readOnly: true,
            stopSeconds: 3,
            shmBytes: 2_097_152,
            capDrop: ['ALL'],
            ulimits: { nofile: { soft: 10, hard: 20 } },
            logging: { driver: 'json-file', options: { 'max-size': '1m' } }
        });
        expect(service).to.equal('web');
        expect(spec.limits).to.equal({ memoryBytes: 67_108_864, cpus: 0.5, pids: null });
        expect(
            spec.ports.map(({ hostIp, hostPort, containerPort, protocol }) =>
                [hostIp, hostPort, containerPort, protocol].join(' ')
            )
        ).to.equal(['127.0.0.1 8080 80 tcp', '0.0.0.0 53 53 udp']);
        expect(
            spec.mounts.map(({ type, source, target, readOnly }) => [type, source, target, readOnly])
        ).to.equal([
            ['volume', 'data', '/data', false],
            ['bind', '/srv/www', '/www', true],
            ['volume', 'more', '/more', true],
            ['tmpfs', null, '/run', false]
        ]);
        expect(spec.networks).to.equal([
            { name: 'back', aliases: ['web', 'w'], external: true, driver: 'bridge' }
        ]);
        expect(spec.healthcheck).to.equal({
            test: ['CMD-SHELL', 'curl -f http://x'],
            intervalSeconds: 5,
            timeoutSeconds: 0,
            retries: 2,
            startSeconds: 0
        });
        expect(warnings).to.equal([
            '--rm is not carried out: a service stays',
            '--gpus is not carried out: name the devices',
            'A shell would fill in what begins with $ or `: here it stays as it is written',
            'Ports without an address are published on 127.0.0.1; 0.0.0.0:8080:80 would be for all'
        ]);
    });

    it('keeps what is dangerous, so that the policy sees it', () => {
        const { spec } = specOf(
            'docker run --privileged --net host --pid=host -v /:/host --device /dev/sda --cap-add SYS_ADMIN --security-opt seccomp=unconfined alpine'
        );
        expect(spec).to.include({
            privileged: true,
            networkMode: 'host',
            pidMode: 'host',
            devices: ['/dev/sda'],
            capAdd: ['SYS_ADMIN'],
            securityOpt: ['seccomp=unconfined']
        });
        expect(spec.mounts[0]?.source).to.equal('/');
    });

    it('names what it cannot know, and takes nothing from the shell of the panel', () => {
        process.env['PORTICO_TEST_SECRET'] = 'of the panel';
        const { compose, warnings } = composeFromRun(
            'podman run -e PORTICO_TEST_SECRET -e X=$PORTICO_TEST_SECRET --env-file .env --annotation a=b alpine `id`'
        );
        delete process.env['PORTICO_TEST_SECRET'];
        expect(compose)
            .to.not.contain('of the panel')
            .and.to.contain('$$PORTICO_TEST_SECRET')
            .and.to.contain('`id`');
        expect(warnings.length).to.equal(4);
        expect(specOf('docker container create -e A alpine', 'A=given').spec.env).to.equal({ A: 'given' });
    });

    it('refuses what is no such line', () => {
        for (const line of [
            '',
            'docker',
            'docker ps',
            'rm -rf /',
            'docker run',
            'docker run -p',
            "docker run 'alpine",
            'docker run alpine; id',
            'docker run alpine && id',
            'docker run alpine $(id)',
            'docker run alpine > /etc/passwd',
            'docker run alpine\ndocker run other'
        ]) {
            expect(() => composeFromRun(line), line).to.throw();
        }
    });

    it('ends for any text', () => {
        const signs = [
            'docker run ',
            '-',
            '--',
            '=',
            ' ',
            '"',
            "'",
            '\\',
            '$',
            'a',
            ':',
            '/',
            '-v',
            ',',
            '__proto__'
        ];
        let seed = 7;
        const next = (below: number): number => {
            seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
            return seed % below;
        };
        for (let round = 0; round < 3_000; round += 1) {
            const line = `docker run ${Array.from({ length: next(12) }, () => signs[next(signs.length)]).join('')}`;
            try {
                const { compose } = composeFromRun(line);
                compile({ name: 'demo', compose, env: '', stackFolder: '/srv', owner: null });
            } catch (error) {
                expect((error as { code?: number }).code, line).to.equal(40001);
            }
        }
    });
});
