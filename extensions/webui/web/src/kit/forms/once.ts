/** What a form sends: once, however often it is sent before the answer comes. */
import { useRef, useState } from 'preact/hooks';

/** Makes the handler of a form's `submit`, and says whether its work is under way. */
export function useSubmit(work: () => Promise<void>): {
    readonly isBusy: boolean;
    readonly onSubmit: (event: Event) => void;
} {
    const isUnderWay = useRef(false);
    const [isBusy, setBusy] = useState(false);
    const begin = async (): Promise<void> => {
        isUnderWay.current = true;
        setBusy(true);
        await work().finally(() => {
            isUnderWay.current = false;
            setBusy(false);
        });
    };
    return {
        isBusy,
        onSubmit(event) {
            event.preventDefault();
            if (!isUnderWay.current) {
                void begin();
            }
        }
    };
}
