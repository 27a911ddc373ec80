import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { compile } from '../../../../extensions/container/src/compose/compile.ts';
import { writeServices } from '../../../../extensions/container/src/compose/write.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const compose = `
services:
  web:
    image: "bb:1"
    command: [sh, -c, "echo $$HOME '\\"' | cat\\n# no comment"]
    entrypoint: [/bin/sh]
    environment: { A: "1", B: "$$x \${C}", YES: "yes", EMPTY: "", MULTI: "a\\nb: c" }
    ports: ["8080:80", "0.0.0.0:53:53/udp", "[::1]:5:6", "9"]
    volumes: [/abs:/data:ro, "vol:/v", { type: tmpfs, target: /t, tmpfs: { size: 1m } }, /anonymous]
    depends_on: { db: { condition: service_healthy } }
    restart: on-failure:2
    mem_limit: 64m
    cpus: 0.5
    pids_limit: 7
    networks: { front: { aliases: [w] } }
    labels: { mine: "$$1", "traefik.rule": "Host(\`a\`)" }
    user: "0:0"
    working_dir: /w
    hostname: h
    tty: true
    stdin_open: true
    init: true
    read_only: true
    stop_grace_period: 3s
    stop_signal: SIGINT
    shm_size: 2m
    cap_add: [NET_RAW]
    cap_drop: [ALL]
    devices: ["/dev/null:/dev/x:r"]
    security_opt: ["no-new-privileges:true"]
    sysctls: { net.core.somaxconn: "1" }
    ulimits: { nofile: { soft: 1, hard: 2 } }
    logging: { driver: local, options: { max-size: 1m } }
    extra_hosts: ["a:127.0.0.1"]
    dns: [127.0.0.1]
    dns_search: [example]
  db:
    image: bb
    scale: 2
    pid: service:extra
    healthcheck: { test: ["CMD", "true"], interval: 1500ms, timeout: 2s, retries: 3, start_period: 1m }
  extra: { image: bb, privileged: true, network_mode: host, ipc: host, uts: host }
networks: { front: { name: outer, external: true } }
volumes: { vol: { name: vol, driver_opts: { type: none, o: bind, device: /etc } } }
`;

describe('writeServices', () => {
    it('writes what compiles to the same specs', () => {
        const read = (text: string, env: string) => {
            const compiled = compile({ name: 'demo', compose: text, env, stackFolder: '/srv', owner: null });
            expect([compiled.errors, compiled.unsupported]).to.equal([[], []]);
            return compiled;
        };
        const first = read(compose, 'C=filled');
        const written = writeServices(
            first.services.map(({ name, containers }) => ({
                name,
                spec: containers[0]!.spec,
                scale: containers.length,
                containerName: null,
                dependsOn: containers[0]!.spec.labels['com.docker.compose.depends_on'] ?? ''
            }))
        ).replace('container:demo-extra-1', 'service:extra');
        const second = read(written, '');
        const plain = ({ services }: typeof first) =>
            services.map(({ name, containers }) => [
                name,
                containers.map(({ spec }) => ({
                    ...spec,
                    mounts: [...spec.mounts].sort((one, other) => (one.target < other.target ? -1 : 1)),
                    networks: spec.networks.map(({ name: network, aliases, external }) => [
                        network,
                        aliases,
                        external
                    ])
                }))
            ]);
        expect(plain(second)).to.equal(plain(first));
        expect(second.volumes.map(({ name, options }) => [name, options])).to.equal(
            first.volumes.map(({ name, options }) => [name, options])
        );
    });
});
