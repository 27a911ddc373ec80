import { startWorker } from '../../browser/trusted.ts';
import type { Challenge, ProofMessage } from './proof.worker.ts';
import workerUrl from './proof.worker.ts?worker&url';

/**
 * Solves a challenge in a worker, and returns it as `POST /api/auth/login` wants it.
 * @param progress - is told how much of the range was tried, from 0 to 1
 */
export function solve(challenge: Challenge, progress: (tried: number) => void): Promise<string> {
    const worker = startWorker(workerUrl);
    return new Promise<string>((resolve, reject) => {
        worker.addEventListener('message', ({ data }: MessageEvent<ProofMessage>) => {
            if ('tried' in data) {
                progress(data.tried);
            } else if (data.number === null) {
                reject(new Error('The challenge has no answer'));
            } else {
                const { algorithm, challenge: hash, salt, signature } = challenge;
                resolve(
                    btoa(JSON.stringify({ algorithm, challenge: hash, number: data.number, salt, signature }))
                );
            }
        });
        worker.addEventListener('error', () => reject(new Error('The challenge could not be solved')));
        worker.postMessage(challenge);
    }).finally(() => worker.terminate());
}
