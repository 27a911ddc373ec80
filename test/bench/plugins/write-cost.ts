/** Processor time of one change of a host through the panel, in microseconds. */
import { startFleet } from '../servers/fleet.ts';
import { cpuOf } from '../servers/load.ts';

const changes = 150;

export async function costOfChange(): Promise<number> {
    const panel = await startFleet(50, '127.0.0.1:9');
    try {
        const client = await panel.login();
        const change = async (n: number): Promise<void> => {
            const { code, text } = await client.put('/api/hosts/1', { notes: `changed ${n}` });
            if (code !== 0) {
                throw new Error(text);
            }
        };
        for (let n = 0; n < 30; n += 1) {
            await change(-n);
        }
        const before = cpuOf(panel.pid);
        for (let n = 0; n < changes; n += 1) {
            await change(n);
        }
        return (cpuOf(panel.pid) - before) / changes;
    } finally {
        await panel.close();
    }
}
