/** The firewall in the test kit, whose `nft` and `ss` run in the server's network namespace. */
import { createTestHost, type TestAnswer, type TestHost, type TestHostOptions } from '@portico/testing';

import { defineFirewall } from '../../../extensions/firewall/src/index.ts';
import { realMachine } from '../../../extensions/firewall/src/machine.ts';
import { Network } from './namespaces.ts';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
type Data = any;

export const base = '/api/plugins/firewall';

export class FirewallRig implements AsyncDisposable {
    readonly host: TestHost;
    readonly network: Network;
    /** Milliseconds that the plugin's clock is ahead. */
    ahead = 0;
    /** Milliseconds that a list may take. */
    listMs = realMachine.listMs;

    private constructor(host: TestHost, network: Network) {
        this.host = host;
        this.network = network;
    }

    static async start(options: TestHostOptions = {}): Promise<FirewallRig> {
        const network = await Network.create();
        const time: { rig: FirewallRig | null } = { rig: null };
        const machine = {
            now: () => Date.now() + (time.rig?.ahead ?? 0),
            get listMs() {
                return time.rig?.listMs ?? realMachine.listMs;
            },
            addresses: () => network.addresses,
            users: () => realMachine.users()
        };
        const host = await createTestHost(defineFirewall(machine), {
            package: new URL('../../../extensions/firewall/package.json', import.meta.url),
            timing: { patienceMs: 60_000 },
            ...options
        }).catch(async (error: unknown) => {
            await network.close();
            throw error;
        });
        for (const program of ['nft', 'ss']) {
            host.programs.answer(program, ({ args }) => network.server.run(program, ...args));
        }
        for (const program of [
            'ufw',
            'firewall-cmd',
            'iptables-save',
            'ip6tables-save',
            'fail2ban-client',
            'cscli',
            'systemctl'
        ]) {
            host.programs.missing(program);
        }
        return (time.rig = new FirewallRig(host, network));
    }

    ask(
        method: string,
        path: string,
        body?: object,
        who: Parameters<TestHost['as']>[0] = 'admin',
        ifMatch?: string
    ): Promise<TestAnswer<Data>> {
        return this.host.as(who).ask<Data>(method, path, body, ifMatch === undefined ? {} : { ifMatch });
    }

    get(path: string): Promise<TestAnswer<Data>> {
        return this.ask('GET', path);
    }

    post(path: string, body: object = {}): Promise<TestAnswer<Data>> {
        return this.ask('POST', path, body);
    }

    put(path: string, body: object): Promise<TestAnswer<Data>> {
        return this.ask('PUT', path, body);
    }

    /** Makes a rule, and gives its id. */
    async rule(rule: object): Promise<number> {
        const { status, data } = await this.post('/rules', { direction: 'in', action: 'accept', ...rule });
        if (status !== 201) {
            throw new Error(`${status} ${JSON.stringify(data)}`);
        }
        return data.id as number;
    }

    /** Applies and confirms the draft. */
    async settle(): Promise<void> {
        const { status, data } = await this.post('/apply', { confirmSeconds: 60 });
        if (status !== 200) {
            throw new Error(`${status} ${JSON.stringify(data)}`);
        }
        const confirmed = await this.post('/confirm', { trialId: data.trialId });
        if (confirmed.status !== 200) {
            throw new Error(`${confirmed.status} ${JSON.stringify(confirmed.data)}`);
        }
    }

    /** The own table as `nft` prints it; empty when it is not there. */
    async table(): Promise<string> {
        return (await this.network.server.run('nft', '-s', 'list', 'table', 'inet', 'portico')).stdout;
    }

    async close(): Promise<void> {
        await this.host.close();
        await this.network.close();
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }
}
