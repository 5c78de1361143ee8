#include "transfers/transfer_options.h"

#include "base/decimal.h"
#include "commands/commands.h"

#define STALL_MOST 86400

static enum option_taken take_number(const struct option_reader *reader, unsigned most,
                                     unsigned *out_number)
{
    const char *text = reader->value;
    uint64_t number;

    if (zt_decimal_read(zt_text_from(text), most, &number) && number >= 1) {
        *out_number = (unsigned)number;
        return OPTION_TAKEN;
    }
    command_usage("%s %s: it must be a number from 1 to %u", reader->name, text, most);
    return OPTION_REFUSED;
}

enum option_taken transfer_option_take(struct transfer_options *options,
                                       const struct option_reader *reader)
{
    if (reporting_take(&options->reporting, reader) || server_option_take(&options->client, reader))
        return OPTION_TAKEN;
    if (option_reader_is(reader, "--jobs"))
        return take_number(reader, CLIENT_JOBS_MAX, &options->client.connections);
    if (option_reader_is(reader, "--timeout"))
        return take_number(reader, STALL_MOST, &options->client.stall_s);
    return OPTION_OTHER;
}
