// Colours for numbers.

const MAPS = {
  viridis: [0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c, 0x28ae80, 0x5ec962, 0xaddc30, 0xfde725],
  gray: [0x000000, 0xffffff],
  diverging: [0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xf7f7f7, 0xf4a582, 0xd6604d, 0xb2182b, 0x67001f],
};
const STEPS = 256;
// For what is not a number: a colour that no map has.
export const NONE = [255, 0, 255];

const channels = (colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff];

// A map as an array of STEPS colours, each of three channels.
function table(name) {
  const stops = MAPS[name].map(channels);

  return Array.from({ length: STEPS }, (_, step) => {
    const at = (step / (STEPS - 1)) * (stops.length - 1);
    const below = Math.min(Math.floor(at), stops.length - 2);

    return stops[below].map((channel, i) => Math.round(channel + (stops[below + 1][i] - channel) * (at - below)));
  });
}

// What the ends of the map stand for: the lowest and highest value, around 0 for the diverging one.
export function limits(name, low, high) {
  const most = Math.max(Math.abs(low), Math.abs(high));
  return name === "diverging" ? [-most, most] : [low, high];
}

// A function from a value (null: none) to its colour.
export function colours(name, low, high) {
  const all = table(name);
  const [first, last] = limits(name, low, high);
  // Halves, since the range of doubles does not fit in one.
  const range = last / 2 - first / 2;

  return (value) => {
    if (value === null || Number.isNaN(value))
      return NONE;
    const at = range > 0 ? (value / 2 - first / 2) / range : 0.5;
    return all[Math.max(0, Math.min(STEPS - 1, Math.floor(at * STEPS)))];
  };
}

export function legend(name) {
  return table(name);
}
